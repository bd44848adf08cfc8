"""Makes a release from a checkout, and publishes it; no part of the wheel (ADR 0030)."""
