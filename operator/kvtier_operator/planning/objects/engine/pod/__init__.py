"""The pod of an engine: its containers, its volumes, and who it runs as."""
