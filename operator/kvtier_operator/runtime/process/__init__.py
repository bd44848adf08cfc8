"""Processes that never outlive their owner and leave nothing in /dev/shm, and whether they answer."""
