"""Requests to the API server: who we are, what it answers, and what its errors mean."""
