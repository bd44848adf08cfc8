"""The operator: observe -> plan -> apply -> status, for every KVCacheTier of a cluster."""
