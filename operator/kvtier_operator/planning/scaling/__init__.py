"""How many engines there are, where an autoscaler says so: who scales, by what metric, and how fast."""
