"""One API server: its client, its errors, and a local view of some of its objects."""
