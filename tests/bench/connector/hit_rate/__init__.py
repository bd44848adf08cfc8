"""Hit rates of the tier's eviction beside LRU, ARC and the optimum."""
