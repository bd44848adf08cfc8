"""The model of the pods: caches as vLLM keeps them, and how long a request takes. No wall clock."""
