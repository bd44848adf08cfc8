"""Checks of the words and variables that a resource gives to vLLM."""
