"""Upstream's offloading connector, answered from our tiers: the scheduler's side and the worker's."""
