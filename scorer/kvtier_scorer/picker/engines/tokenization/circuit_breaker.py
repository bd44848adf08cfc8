"""Which pods are not asked for a while: those that did not answer, or took too long, some times in a row."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from kvtier_common.backoff import doubled_s

_FAILURES: Final = 3
_FIRST_S: Final = 1.0
_LONGEST_S: Final = 60.0
_MOST_FAILURES: Final = 16
_MOST_PODS: Final = 4096
"""Those in trouble; the one that has been for longest is forgotten."""


@dataclass(slots=True)
class _Trouble:
    failures: int = 0
    until_s: float = 0.0
    is_tried: bool = False


class CircuitBreaker:
    """Per pod: closed, open for a while that doubles up to a minute, then open to one request that tries.

    Args:
        clock: In seconds.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._troubles: dict[str, _Trouble] = {}

    @property
    def open_count(self) -> int:
        """Number of pods that are not asked now."""
        now_s = self._clock()
        return sum(each.failures >= _FAILURES and now_s < each.until_s for each in self._troubles.values())

    def try_acquire(self, address: str) -> bool:
        """Whether this request may ask that pod; if it failed before, one request at a time tries it."""
        trouble = self._troubles.get(address)
        if trouble is None or trouble.failures < _FAILURES:
            return True
        now_s = self._clock()
        if now_s < trouble.until_s:
            return False
        trouble.until_s = now_s + _wait_s(trouble.failures)
        trouble.is_tried = True
        return True

    def on_success(self, address: str) -> None:
        """A pod answered in time."""
        self._troubles.pop(address, None)

    def on_failure(self, address: str) -> None:
        """A pod did not answer, or too late. Requests sent before it was known to fail do not count."""
        trouble = self._troubles.setdefault(address, _Trouble())
        if trouble.failures < _FAILURES:
            trouble.failures += 1
            trouble.until_s = self._clock() + _FIRST_S
        elif trouble.is_tried:
            trouble.failures = min(trouble.failures + 1, _MOST_FAILURES)
            trouble.until_s = self._clock() + _wait_s(trouble.failures)
        trouble.is_tried = False
        if len(self._troubles) > _MOST_PODS:
            del self._troubles[next(iter(self._troubles))]


def _wait_s(failures: int) -> float:
    return doubled_s(_FIRST_S, _LONGEST_S, max(0, failures - _FAILURES))
