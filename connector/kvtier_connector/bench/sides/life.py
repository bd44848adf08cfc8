"""One life of one side: an engine from its start to its end."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from kvtier_connector.bench.engines.engine import BenchEngine, bench_engine
from kvtier_connector.bench.engines.given import Given

PINNING_TIMEOUT_S: Final = 120.0
"""Until an engine that page-locks its tier while it serves is at rest: 200 GiB at 0.56 s each."""


@dataclass(frozen=True, slots=True)
class Life:
    """A running engine, and the seconds that it took to be ready."""

    engine: BenchEngine
    ready_s: float


@contextmanager
def life(
    settings: dict[str, Any],
    transfer: dict[str, Any] | None,
    *,
    given: Given,
    log: Path,
    module: str | None = None,
) -> Iterator[Life]:
    """Start an engine and end it: nothing of one side is in memory while another is measured.

    Args:
        settings: as of `Comparison.settings`.
        transfer: the side's connector; None for none.
        given: arguments from outside.
        log: file for the engine's output.
        module: as of `bench_engine`.

    Raises:
        ConnectorError: the engine died.
    """
    begun = time.monotonic()
    wanted = settings | {"kv_transfer_config": transfer}
    what = {} if module is None else {"module": module}
    with bench_engine(wanted, log=log, given=given, **what) as engine:
        yield Life(engine, time.monotonic() - begun)


def log_of(log: Path, side: str, turn: int) -> Path:
    """Return the file for one life's output, beside the part's."""
    return log.with_suffix(f".{side}.{turn + 1}.log")
