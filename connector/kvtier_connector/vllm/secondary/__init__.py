"""Our disk tier as an entry of vLLM's own secondary tiers."""
