"""What the engines themselves counted while the workload ran: prompt tokens found, by tier."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import aiohttp

from kvtier_common.metrics.text import read_families
from kvtier_scorer.bench.shared_prefix.errors import ServerError

_HTTP_OK: Final = 200
_DEVICE_QUERIES: Final = b"vllm:prefix_cache_queries_total"
_DEVICE_HITS: Final = b"vllm:prefix_cache_hits_total"
_TIER_HITS: Final = b"vllm:external_prefix_cache_hits_total"
"""vLLM v1/metrics/loggers.py: tokens asked for and found in the device's cache, and by a connector."""


@dataclass(frozen=True, slots=True)
class FoundTokens:
    """Prompt tokens of one engine, or of several added up.

    Attributes:
        queried: Looked up.
        device: Found in the device's cache.
        tier: Found by the connector, in memory or on disk.
    """

    queried: float = 0.0
    device: float = 0.0
    tier: float = 0.0

    def __add__(self, other: "FoundTokens") -> "FoundTokens":
        return FoundTokens(self.queried + other.queried, self.device + other.device, self.tier + other.tier)

    def __sub__(self, other: "FoundTokens") -> "FoundTokens":
        return FoundTokens(self.queried - other.queried, self.device - other.device, self.tier - other.tier)


def found_tokens(text: str) -> FoundTokens:
    """Read an engine's metrics; data-parallel engines behind one address are added up.

    Raises:
        ValueError: There is nothing of vLLM's in them.
    """
    found = read_families(text.encode(), (_DEVICE_QUERIES, _DEVICE_HITS, _TIER_HITS))
    if not found.samples:
        raise ValueError(f"these are not vLLM's metrics: {found.start!r}")
    return FoundTokens(found.total(_DEVICE_QUERIES), found.total(_DEVICE_HITS), found.total(_TIER_HITS))


async def read_engines(urls: Sequence[str]) -> Mapping[str, FoundTokens]:
    """What each engine has counted since its start.

    Args:
        urls: Base URLs of the engines.

    Raises:
        ServerError: One does not answer, or not with metrics.
    """
    timeout = aiohttp.ClientTimeout(total=30.0)
    async with aiohttp.ClientSession(timeout=timeout) as session:

        async def read(url: str) -> FoundTokens:
            address = f"{url.rstrip('/')}/metrics"
            try:
                async with session.get(address) as response:
                    if response.status != _HTTP_OK:
                        raise ServerError(f"--engine {url}: {address} answered {response.status}")
                    return found_tokens(await response.text())
            except (aiohttp.ClientError, OSError) as error:
                raise ServerError(f"--engine {url}: {error or type(error).__name__}") from error
            except ValueError as error:
                raise ServerError(f"--engine {url}: {address}: {error}") from error

        counted = await asyncio.gather(*(read(url) for url in urls))
    return dict(zip(urls, counted, strict=True))
