"""An engine's /metrics: asked for and read with bounds, and the names in them."""
