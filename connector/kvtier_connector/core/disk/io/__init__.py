"""Reads and writes of the disk tier's blocks: io_uring where the kernel allows it, threads otherwise."""
