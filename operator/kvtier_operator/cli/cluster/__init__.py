"""Commands that show what a cluster says of KVCacheTiers, with the rights of whoever asks."""
