"""Whether a disk tier ever makes an engine slower: a device throttled to any speed, engines of any pace."""
