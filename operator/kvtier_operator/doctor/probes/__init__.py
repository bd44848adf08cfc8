"""One probe a file: tries things on this machine or container and returns facts for a check."""
