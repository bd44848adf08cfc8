"""The demo's first act: one engine with a CPU tier against one without."""
