"""What the engines say of themselves on /metrics: load, capacity of their tiers, confirmed hits."""
