"""What a model's KV cache costs: bytes of a token and of a prefix, blocks, and how ranks divide them."""
