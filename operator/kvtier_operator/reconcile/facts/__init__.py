"""Pure readers: what objects say in their status, what engines report, and what is kept of a plan."""
