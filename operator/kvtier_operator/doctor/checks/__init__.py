"""One check a file: a pure function from demand and facts to a verdict."""
