"""vLLM's arguments: those that a plan gives it, and how it reads the words that a resource gives."""
