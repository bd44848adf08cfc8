"""The guide's workloads, scaled down: an engine with the tier beside one with its device cache alone."""
