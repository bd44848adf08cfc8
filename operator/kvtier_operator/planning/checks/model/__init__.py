"""Checks of the model: whether vLLM serves it, at this length, and where its weights come from."""
