"""What a KVCacheTier may ask for only if its author may do it anyway."""
