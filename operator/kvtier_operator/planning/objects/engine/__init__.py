"""The objects of the engines."""
