"""Objects of a Prometheus operator, for the operator's own metrics."""
