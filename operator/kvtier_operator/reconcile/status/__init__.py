"""Status: one condition a file, each a pure function; `build.py` puts them together."""
