"""The status of a resource: `conditions/` has one condition a file, `build.py` puts them together."""
