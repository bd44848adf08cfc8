"""A resource's view for people and for programs."""
