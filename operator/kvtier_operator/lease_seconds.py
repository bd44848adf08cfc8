"""How long the operator's Lease outlives its holder: what the command and the chart take."""

from typing import Final

DEFAULT_LEASE_S: Final = 15
LEAST_LEASE_S: Final = 5
"""A third of it is all the time that a slow API server has for a last write."""
MOST_LEASE_S: Final = 3600
