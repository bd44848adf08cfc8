"""What became of an engine that others own, on the /metrics that vLLM serves."""

from functools import cache

from prometheus_client import Gauge

from kvtier_connector.attach.decisions import INFO_METRIC, Reason

_told: list[Reason] = []


def is_told(reason: Reason) -> bool:
    """Whether this is what was told last."""
    return _told[-1:] == [reason]


def tell(reason: Reason) -> None:
    """Say so in place of what was said before. Of several processes with one /metrics the last one counts."""
    gauge = _gauge()
    if _told:
        gauge.clear()  # which does nothing for several processes, but for a warning
    gauge.labels(reason.value).set(1)
    _told[:] = [reason]


@cache
def _gauge() -> Gauge:
    """Make it when there is something to say, in the registry that vLLM serves."""
    about = "1, with what became of this engine: Attached, or why it has no tier."
    return Gauge(INFO_METRIC, about, ["reason"], multiprocess_mode="mostrecent")
