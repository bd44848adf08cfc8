"""Beside the engine's own API: who asks it from the same pod."""
