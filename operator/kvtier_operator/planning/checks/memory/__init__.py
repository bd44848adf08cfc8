"""Checks of the memory that an engine and its CPU tier take."""
