"""The vLLM KV connector: prefix-cache tiers beyond the device, first of all CPU memory."""
