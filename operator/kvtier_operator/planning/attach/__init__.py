"""The tiers for vLLM pods that others own: what is given, and how it goes into a pod."""
