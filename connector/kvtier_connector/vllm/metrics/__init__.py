"""What the tiers tell Prometheus, through vLLM's own /metrics."""
