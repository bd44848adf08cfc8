"""Stores that speak the Redis protocol: Redis and Valkey, one server or a cluster."""
