"""What the operator is given when it starts, and how long it waits."""
