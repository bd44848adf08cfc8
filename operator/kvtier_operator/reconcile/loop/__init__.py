"""Which resource is reconciled when, and what one round does."""
