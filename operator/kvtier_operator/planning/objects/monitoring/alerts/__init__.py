"""Alerts of a PrometheusRule, one a file; prometheus_rule.py lists them."""
