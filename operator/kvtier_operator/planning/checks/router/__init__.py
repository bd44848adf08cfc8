"""Checks of the endpoint picker and its gateway."""
