"""The objects of the endpoint picker, one a file."""
