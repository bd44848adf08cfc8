"""Precise mode: what vLLM's KV events say that a pod holds, instead of what was sent there."""
