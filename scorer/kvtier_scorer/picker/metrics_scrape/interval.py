"""How often pods are scraped, so that a thousand of them do not take the core that picks."""

from typing import Final

SCRAPE_S: Final = 0.0003
"""Processor time of a scrape of 60 KB: 0.2 ms for the request, 0.1 ms to read it (a 2-core VM)."""
SHARE: Final = 0.25
"""Of one core, that scraping may take at most."""


def interval_s(wanted_s: float, pods: int) -> float:
    """Seconds between two scrapes of a pod: as wanted, or so that all pods take a quarter core.

    At 0.1 s it stretches from 83 pods on; 1,000 pods are scraped every 1.2 s.
    """
    return max(wanted_s, pods * SCRAPE_S / SHARE)
