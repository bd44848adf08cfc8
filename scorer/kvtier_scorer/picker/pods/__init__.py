"""Which pods there are: from a list, from an InferencePool, or by their labels."""
