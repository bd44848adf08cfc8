"""Tiers behind the one in memory."""
