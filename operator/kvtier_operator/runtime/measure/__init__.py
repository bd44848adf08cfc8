"""Measures time to first token of OpenAI-compatible servers and of engines in their own process."""
