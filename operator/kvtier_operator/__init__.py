"""The operator side of kvtier: the KVCacheTier API, the planner, the embedded runtime and the command line."""
