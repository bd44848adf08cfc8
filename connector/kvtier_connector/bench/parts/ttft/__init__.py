"""Time to first token: cold, from the device's cache and from the tier."""
