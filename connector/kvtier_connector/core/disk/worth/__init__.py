"""What reading from disk is worth: how fast the disk is, and the engine."""
