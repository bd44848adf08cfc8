"""Formats of single fields as Kubernetes reads them: quantities, names, addresses."""
