"""What the status needs to know of running things, read out of their objects."""
