"""Checks of what the cluster's owner lets a resource ask for."""
