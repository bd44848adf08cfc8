"""The tier's memory without requests: its index, its start, its growth, copies to and from a GPU."""
