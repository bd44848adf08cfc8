"""YAML and JSON that others wrote, read with bounds."""
