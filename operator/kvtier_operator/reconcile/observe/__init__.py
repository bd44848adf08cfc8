"""What only others can tell: engines about their tiers, ConfigMaps and the Hub about a model's shape."""
