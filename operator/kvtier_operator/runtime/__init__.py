"""Runs a Plan as processes on this machine, measures it, and demonstrates it."""
