"""What all of planning stands on: names of objects, parts of containers, tiers, nodes as observed."""
