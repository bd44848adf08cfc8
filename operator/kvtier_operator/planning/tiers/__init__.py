"""The tiers of one engine pod: what fits each, and what engines report of them."""
