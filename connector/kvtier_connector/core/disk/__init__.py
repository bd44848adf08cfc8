"""The disk tier: its index, its files, the thread that reads and writes them, and whether reading pays."""
