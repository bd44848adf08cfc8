"""Which nodes of a cluster can hold the engines of a Plan, and what the others lack."""
