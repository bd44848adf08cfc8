"""What Prometheus scrapes, whichever kind of object tells it."""

from typing import Final

from kvtier_operator.planning.objects.names import Component

METRICS_PATH: Final = "/metrics"
INTERVAL: Final = "15s"
"""A cache's hit rate is looked at over minutes; upstream's charts scrape pickers every 10 s."""

PORTS: Final = {Component.ENGINE: "http", Component.PICKER: "http-metrics"}
"""Port names, the same in the Services and in the containers."""
