"""The remote tier: a store that all engines read and write over a network."""
