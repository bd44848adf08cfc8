"""One check a file: a pure verdict over what was needed and what was found."""
