"""pydantic models of kvtier.dev/v1alpha1: the one source of the CRD, its schema, its CEL rules and its reference."""
