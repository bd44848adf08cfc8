"""What a model looks like to a KV cache, read from the resource, a config.json or the catalogue."""
