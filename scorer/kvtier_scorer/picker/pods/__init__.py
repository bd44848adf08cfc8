"""Which pods there are: from a list, or from an InferencePool."""
