"""Answers over HTTP, read and given with bounds."""
