"""The `kvtier` command: each sub-command one file, loaded only when typed."""
