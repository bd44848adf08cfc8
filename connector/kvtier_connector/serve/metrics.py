"""What is told of prefixes on the /metrics that vLLM serves."""

from functools import cache

from prometheus_client import Gauge

from kvtier_common.metrics import prefixes as names


def tell_asked(prefix: str, tokens: int, cached_tokens: int | None) -> None:
    """Say what came of asking for a prefix; of what was cached nothing where the engine does not say it."""
    _gauge(names.COMPUTED).labels(prefix).set(1)
    _gauge(names.TOKENS).labels(prefix).set(tokens)
    if cached_tokens is not None:
        _gauge(names.CACHED_TOKENS).labels(prefix).set(cached_tokens)


def tell_failed(prefix: str) -> None:
    """Say that a prefix could not be computed."""
    _gauge(names.COMPUTED).labels(prefix).set(0)


@cache
def _gauge(name: str) -> Gauge:
    """Make it when there is something to say, in the registry that vLLM serves.

    Of several API servers, which share one /metrics, one asks for prefixes.
    """
    return Gauge(name, names.ABOUT[name], ["prefix"], multiprocess_mode="mostrecent")
