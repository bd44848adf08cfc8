"""What was read of a resource, worked out: pure functions over frozen dataclasses."""
