"""How vLLM reads the words of `vllm serve` that a resource gives it."""
