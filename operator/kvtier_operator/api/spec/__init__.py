"""The parts of `spec`."""
