"""Checks of the KV cache itself: its blocks, dtypes and layout."""
