"""How many parameters a model has, and how many compute one token."""
