"""What requests say of their blocks, from `kv_transfer_params` to hints for the tiers' indexes.

Hints are read once, when a request comes. A bad one changes nothing but a counter, and a line of the log once
a minute.
"""

import time
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from kvtier_common.hints import FIELD, NO_HINTS, NOBODY, Hints, Priority, parse_hints, reason_of
from kvtier_connector.core.index.hints import BlockHint
from kvtier_connector.vllm.upstream.compat import log

_SAID_EVERY_S: Final = 60.0
_HIGH_S: Final = 300.0
"""How long a priority of high holds where the request does not say."""


@dataclass(slots=True)
class RequestHints:
    """In the state of a request's context: what it says, and its chunks so far, root to tail."""

    hints: Hints
    keys: dict[bytes, None] = field(default_factory=dict)

    @property
    def is_dear(self) -> bool:
        """Whether its chunks go to a store at once, which otherwise gets what is used again."""
        return self.hints.priority is not Priority.LOW and self.retain_s > 0

    @property
    def is_cheap(self) -> bool:
        """Whether its chunks are no reason to write to a store."""
        return self.hints.priority is Priority.LOW

    @property
    def retain_s(self) -> float:
        """For how long after its end its chunks are likely to be used again."""
        is_high = self.hints.priority is Priority.HIGH
        return self.hints.retain_s or (_HIGH_S if is_high else 0.0)

    def block_hint(self, now_s: float) -> BlockHint:
        """Return what holds of its chunks if it ended now."""
        until_s = now_s + self.retain_s if self.retain_s else 0.0
        return BlockHint(until_s, self.hints.priority, self.hints.tenant)


class HintReader:
    """Reads requests' hints."""

    def __init__(self, tenants: Collection[str], clock: Callable[[], float] = time.monotonic) -> None:
        self._tenants = frozenset(tenants)
        self._clock = clock
        self._refused = Counter[str]()
        self._unsaid = 0
        self._said_at_s = clock() - _SAID_EVERY_S

    def read(self, params: Mapping[str, object] | None, cache_salt: str | None) -> Hints:
        """Return what a request says; its tenant is one of the listed ones, or empty."""
        hints, problems = NO_HINTS, list[str]()
        if params is not None and FIELD in params:
            hints, problems = parse_hints(params[FIELD])
        tenant = hints.tenant
        if tenant and tenant not in self._tenants:
            if tenant != NOBODY:
                problems.append("share: must be a tenant of the engine's settings")
            tenant = ""
        # whoever says a share, even a wrong one, is not looked for elsewhere
        if cache_salt and not _says_share(params):
            before = cache_salt.partition(":")[0]
            tenant = before if before in self._tenants else ""
        if problems:
            self._refuse(problems)
        return hints if tenant == hints.tenant else replace(hints, tenant=tenant)

    def take_refused(self) -> Counter[str]:
        """Return how many hints were not understood since the last call, by reason."""
        refused = self._refused
        if refused:
            self._refused = Counter()
        return refused

    def _refuse(self, problems: list[str]) -> None:
        self._refused.update(map(reason_of, problems))
        self._unsaid += len(problems)
        now_s = self._clock()
        if now_s - self._said_at_s >= _SAID_EVERY_S:
            log.warning(
                "kvtier: %d hint(s) of requests were passed over, the last: %s", self._unsaid, problems[-1]
            )
            self._said_at_s, self._unsaid = now_s, 0


def _says_share(params: Mapping[str, object] | None) -> bool:
    said = params.get(FIELD) if params is not None else None
    return isinstance(said, Mapping) and "share" in said
