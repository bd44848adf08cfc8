"""The blocks of a KV cache: their tokens, the groups of layers that share them, and what raises them."""
