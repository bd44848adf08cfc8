"""What engines tell of themselves: metrics, KV events, tokens."""
