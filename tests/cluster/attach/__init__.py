"""Pods of other owners on the real API server, with the policy that gives them a tier."""
