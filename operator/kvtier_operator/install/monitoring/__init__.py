"""Objects for Prometheus and Grafana, for the operator's own metrics."""
