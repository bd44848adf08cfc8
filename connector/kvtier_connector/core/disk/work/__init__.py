"""The thread that reads and writes: what waits, what is under way, what has ended."""
