"""Which engines go first when an autoscaler wants fewer: those that hold least."""
