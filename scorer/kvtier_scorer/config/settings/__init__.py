"""Reads the configuration of kvtier's own picker: YAML, to fields, to settings that make sense."""
