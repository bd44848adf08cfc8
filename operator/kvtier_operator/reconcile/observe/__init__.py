"""What no watch shows: what engines report of their tiers, and where a model's configuration comes from."""
