"""The benchmark's store of a remote tier: its server, a slow way to it, and what its bytes cost to move."""
