"""Our tiers behind vLLM's own CPU tier: entries of `secondary_tiers` of its TieringOffloadingSpec."""
