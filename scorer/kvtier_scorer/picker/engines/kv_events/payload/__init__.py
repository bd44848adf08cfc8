"""What is in one message: vLLM's events, and what their fields mean."""
