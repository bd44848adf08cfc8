"""The objects of the engines, one a file."""
