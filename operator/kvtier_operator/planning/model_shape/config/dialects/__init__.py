"""Files that describe a model in words of their own, put into those of most."""
