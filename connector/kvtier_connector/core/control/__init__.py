"""The control socket: orders to a running engine, from the same machine and user alone."""
