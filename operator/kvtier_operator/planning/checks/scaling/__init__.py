"""Whether an autoscaler has something to go by."""
