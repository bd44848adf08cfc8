"""What the operator asks the API server for: its kinds of objects, and whether it may read them."""
