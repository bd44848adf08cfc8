"""How often pods are scraped, so that a thousand of them do not take the core that picks."""

from typing import Final

from kvtier_common.backoff import doubled_s

SCRAPE_S: Final = 0.0003
"""Processor time of a scrape of 60 KB: 0.2 ms for the request, 0.1 ms to read it (a 2-core VM)."""
SHARE: Final = 0.25
"""Of one core, that scraping may take at most."""
_LONGEST_S: Final = 5.0


def interval_s(wanted_s: float, pods: int) -> float:
    """Seconds between two scrapes of a pod: as wanted, or so that all pods take a quarter core.

    At 0.1 s it stretches from 83 pods on; 1,000 pods are scraped every 1.2 s.
    """
    return max(wanted_s, pods * SCRAPE_S / SHARE)


def after_failures_s(usual_s: float, failures: int) -> float:
    """Seconds to the next scrape after so many wrong answers in a row: doubling, 5 s at most."""
    return max(usual_s, doubled_s(usual_s, _LONGEST_S, failures))
