"""Ports of the endpoint picker: those that upstream's pickers listen on by default."""

from typing import Final

EXT_PROC_PORT: Final = 9002
HEALTH_PORT: Final = 9003
METRICS_PORT: Final = 9090
