"""Runs of the simulator: policies compared, weights searched for, and how certain the differences are."""
