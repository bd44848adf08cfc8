"""The endpoint picker's configuration and resources, and the routes that lead to it."""
