"""One condition of the status a file, each a pure function."""
