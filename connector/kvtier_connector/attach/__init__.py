"""Gives the tier to an engine that others own, from inside it."""
