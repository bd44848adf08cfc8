"""What the owner of a cluster lets KVCacheTiers ask for."""
