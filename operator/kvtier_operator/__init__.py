"""The operator side of kvtier: the KVCacheTier API, the planner, the local runtime and the command line."""
