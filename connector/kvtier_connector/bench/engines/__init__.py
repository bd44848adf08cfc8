"""vLLM in a process of its own: with which model, arguments and connector, and what it is asked."""
