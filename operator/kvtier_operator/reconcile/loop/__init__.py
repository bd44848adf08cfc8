"""Which resource is reconciled when, and what one reconciliation does."""
