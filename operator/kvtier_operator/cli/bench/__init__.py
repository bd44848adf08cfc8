"""`kvtier bench`, and those of its sub-commands that need no other package, one a file."""
