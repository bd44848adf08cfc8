"""What the engines themselves counted while the workload ran: prompt tokens found, by tier."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import aiohttp
from prometheus_client.parser import text_string_to_metric_families

from kvtier_scorer.bench.shared_prefix.errors import ServerError

_HTTP_OK: Final = 200
_DEVICE_QUERIES: Final = "vllm:prefix_cache_queries_total"
_DEVICE_HITS: Final = "vllm:prefix_cache_hits_total"
_TIER_HITS: Final = "vllm:external_prefix_cache_hits_total"
"""vLLM v1/metrics/loggers.py: tokens asked for and found in the device's cache, and by a connector."""


@dataclass(frozen=True, slots=True)
class TierTokens:
    """Prompt tokens of one engine, or of several added up.

    Attributes:
        queried: Looked up.
        device: Found in the device's cache.
        tier: Found by the connector, in memory or on disk.
    """

    queried: float = 0.0
    device: float = 0.0
    tier: float = 0.0

    def __add__(self, other: "TierTokens") -> "TierTokens":
        return TierTokens(self.queried + other.queried, self.device + other.device, self.tier + other.tier)

    def __sub__(self, other: "TierTokens") -> "TierTokens":
        return TierTokens(self.queried - other.queried, self.device - other.device, self.tier - other.tier)


def tier_tokens(text: str) -> TierTokens:
    """Read an engine's metrics; data-parallel engines behind one address are added up.

    Raises:
        ValueError: These are not metrics.
    """
    totals: dict[str, float] = dict.fromkeys((_DEVICE_QUERIES, _DEVICE_HITS, _TIER_HITS), 0.0)
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            if sample.name in totals:
                totals[sample.name] += sample.value
    return TierTokens(totals[_DEVICE_QUERIES], totals[_DEVICE_HITS], totals[_TIER_HITS])


async def read_engines(urls: Sequence[str]) -> Mapping[str, TierTokens]:
    """What each engine has counted since its start.

    Args:
        urls: Base URLs of the engines.

    Raises:
        ServerError: One does not answer, or not with metrics.
    """
    timeout = aiohttp.ClientTimeout(total=30.0)
    async with aiohttp.ClientSession(timeout=timeout) as session:

        async def read(url: str) -> TierTokens:
            address = f"{url.rstrip('/')}/metrics"
            try:
                async with session.get(address) as response:
                    if response.status != _HTTP_OK:
                        raise ServerError(f"--engine {url}: {address} answered {response.status}")
                    return tier_tokens(await response.text())
            except (aiohttp.ClientError, OSError) as error:
                raise ServerError(f"--engine {url}: {error or type(error).__name__}") from error
            except ValueError as error:
                raise ServerError(f"--engine {url}: {address} is not a page of metrics") from error

        counted = await asyncio.gather(*(read(url) for url in urls))
    return dict(zip(urls, counted, strict=True))
