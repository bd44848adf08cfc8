"""The parts of `spec`, one a file."""
