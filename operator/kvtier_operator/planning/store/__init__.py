"""The store that is made for all engines of one resource: its size, and the files that its server reads."""
