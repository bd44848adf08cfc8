"""Configuration of endpoint pickers: what other pickers get, and what kvtier's own reads."""
