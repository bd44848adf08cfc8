"""What an engine's pod needs of its node beside the KV cache."""
