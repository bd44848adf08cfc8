"""What a request's hints come to in the manager and behind it, with vLLM's own types and no engine."""

import logging
from collections.abc import Sequence
from typing import Any

import pytest

from kvtier_common.metrics import hints as names
from kvtier_common.tier import Tier
from kvtier_connector.core.behind.break_even import BreakEven
from kvtier_connector.core.behind.progress import Counts, Progress
from kvtier_connector.core.index.hints import BlockHint, Sharing, TenantPart
from kvtier_connector.core.index.slots import TierGeometry
from kvtier_connector.core.region.growth import Grown

pytestmark = [pytest.mark.engine, pytest.mark.filterwarnings("ignore")]

SLOTS = 100
SHARING = Sharing(tenants={"a": TenantPart(0.3), "b": TenantPart(0.2, 0.5)})


class Scene:
    """A manager, and requests that come, store and end."""

    def __init__(self) -> None:
        from kvtier_connector.vllm.offloading.manager import KVTierManager  # noqa: PLC0415 - takes seconds

        geometry = TierGeometry(SLOTS, 1024, 1, 1)
        self.manager = KVTierManager(geometry, {0: 16}, with_events=False, sharing=SHARING)
        self.manager.grow(Grown(SLOTS, 0, is_over=True))
        self._requests = 0

    def context(self, params: dict[str, Any] | None = None, salt: str | None = None) -> Any:  # noqa: ANN401 - vLLM has no types
        from vllm.v1.kv_offload.base import ReqContext  # noqa: PLC0415 - takes seconds

        self._requests += 1
        context = ReqContext(str(self._requests), kv_transfer_params=params)
        self.manager.take_hints(context, params, salt)
        return context

    def serve(self, first: int, count: int, hints: object = None, salt: str | None = None) -> list[Any]:
        """Store a prompt as a request does; returns its keys."""
        from vllm.v1.kv_offload.base import make_offload_key  # noqa: PLC0415 - takes seconds

        context = self.context({"kvtier": hints} if hints is not None else None, salt)
        keys = [make_offload_key(number.to_bytes(32, "big"), 0) for number in range(first, first + count)]
        for place, key in enumerate(keys, start=1):
            context.set_offload_key_position(key, place * 16)
        stored = self.manager.prepare_store(keys, context).keys_to_store
        self.manager.complete_store(stored, context)
        self.manager.on_request_finished(context)
        return keys

    def there(self, keys: Sequence[Any]) -> int:
        from vllm.v1.kv_offload.base import LookupResult  # noqa: PLC0415 - takes seconds

        context = self.context()
        return sum(self.manager.lookup(key, context) is LookupResult.HIT for key in keys)

    def flood(self, hints: object = None, salt: str | None = None) -> None:
        for number in range(40):
            self.serve(10_000 + 10 * number, 10, hints, salt)

    def values(self) -> dict[tuple[str, tuple[str, ...]], float]:
        stats = self.manager.get_stats()
        found: dict[str, dict[tuple[str, ...], float]] = {} if stats is None else stats._values
        return {(name, labels): value for name, each in found.items() for labels, value in each.items()}


def test_a_retained_prompt_survives_what_others_do_not_and_shows_in_the_metrics() -> None:
    scene = Scene()
    kept, other = scene.serve(0, 10, {"retain": 3600, "priority": "high"}), scene.serve(100, 10)
    scene.flood()
    assert (scene.there(kept), scene.there(other)) == (10, 0)
    assert scene.values()[names.RETAINED_BYTES, ("cpu",)] == 10 * 1024


def test_a_prompt_that_is_not_to_be_stored_is_not_and_nothing_leaves_for_it() -> None:
    scene = Scene()
    other = scene.serve(0, SLOTS)
    assert scene.there(scene.serve(200, 10, {"nostore": True})) == 0
    assert scene.there(other) == SLOTS


def test_a_tenant_is_named_by_share_and_only_without_one_by_its_salt() -> None:
    scene = Scene()
    by_share = scene.serve(0, 10, {"share": "a"})
    scene.serve(10, 10, salt="a:session")
    scene.serve(20, 10, salt="a")
    scene.serve(30, 10, salt="someone:else")
    scene.serve(40, 10, {"share": "c"}, salt="b:x")
    scene.serve(50, 10, {"share": "-"}, salt="b:x")
    scene.serve(60, 10, {"share": "x" * 64}, salt="b:x")
    scene.serve(70, 5, salt="b:x")
    assert scene.manager._index.held_by_tenant == {"": 40, "a": 30, "b": 5}
    scene.flood(salt="b:y")
    assert scene.there(by_share) == 10
    found = scene.values()
    assert found[names.TENANT_HELD_BYTES, ("a", "cpu")] == 30 * 1024
    assert found[names.TENANT_STORED_BYTES, ("other",)] == 40 * 1024
    assert found[names.REFUSED, ("share",)] == 2


def test_a_request_asks_once_however_often_it_is_looked_up_and_again_when_it_was_preempted() -> None:
    scene = Scene()
    context = scene.context(salt="a:x")
    for preemptions, tokens in ((0, 100), (0, 100), (1, 50), (1, 50)):
        scene.manager.count_asked(tokens, preemptions, context)
    scene.manager.count_asked(7, 0, scene.context())
    found = scene.values()
    assert found[names.TENANT_ASKED_TOKENS, ("a",)] == 150
    assert found[names.TENANT_ASKED_TOKENS, (names.OTHER,)] == 7


@pytest.mark.parametrize(
    ("hints", "reason"),
    [
        ("retain", "form"),
        ([], "form"),
        ({"retain": -1}, "retain"),
        ({"retain": True}, "retain"),
        ({"priority": "highest"}, "priority"),
        ({"share": ""}, "share"),
        ({"nostore": "yes"}, "nostore"),
        ({"pin": True}, "unknown"),
    ],
)
def test_a_bad_hint_changes_nothing_but_a_counter(hints: object, reason: str) -> None:
    scene = Scene()
    keys = scene.serve(0, 10, hints)
    assert scene.there(keys) == 10
    assert scene.values()[names.REFUSED, (reason,)] == 1
    assert scene.manager._index.retained == 0
    assert scene.manager._index.held_by_tenant == {"": 10, "a": 0, "b": 0}


def test_bad_hints_are_one_line_of_the_log_a_minute(caplog: pytest.LogCaptureFixture) -> None:
    from kvtier_connector.vllm.hints import HintReader  # noqa: PLC0415 - takes seconds

    now = [0.0]
    reader = HintReader((), lambda: now[0])
    with caplog.at_level(logging.WARNING, logger="vllm.kvtier"):
        for _ in range(100):
            reader.read({"kvtier": {"retain": "\n" * 1000, "other": 1}}, None)
        assert len(caplog.records) == 1
        now[0] = 61
        reader.read({"kvtier": {"retain": -1}}, None)
    assert [record.args[0] for record in caplog.records if isinstance(record.args, tuple)] == [2, 199]
    assert all("\n" not in record.getMessage() for record in caplog.records)
    assert reader.take_refused() == {"retain": 101, "unknown": 100}


def test_anothers_parameters_are_left_as_they_are() -> None:
    scene = Scene()
    params = {"do_remote_prefill": True, "remote_engine_id": "e"}
    assert scene.context(params).kv_transfer_params == params
    assert scene.values().keys() <= Scene().values().keys()


class Store:
    """A store that engines share, which notes what it is given."""

    tier = Tier.REMOTE
    block_bytes = 1024
    slots = 1000
    reads_in_parts = False
    writes_when_stored = False
    is_asked = True
    index = None
    used = loading = asking = 0
    is_down = False

    def __init__(self) -> None:
        self.break_even = BreakEven(always=True)
        self.given: dict[bytes, BlockHint | None] = {}

    def lacking(self, keys: Sequence[bytes]) -> list[bytes]:
        return [key for key in keys if key not in self.given]

    def admit(self, lacking: Sequence[bytes], *, were_offered: bool = False) -> Sequence[bytes]:
        del were_offered
        return lacking

    def store(
        self, keys: Sequence[bytes], _: object, progress: Progress, hint: BlockHint | None = None
    ) -> None:
        self.given.update(dict.fromkeys(keys, hint))
        progress.released += keys

    def touch(self, keys: Sequence[bytes], hint: BlockHint | None = None) -> None: ...

    def take_counts(self) -> Counts:
        return Counts()


@pytest.mark.parametrize(
    ("hints", "stored", "used_again"),
    [
        (None, 0, 10),
        ({"retain": 60}, 10, 10),
        ({"priority": "high"}, 10, 10),
        ({"priority": "low"}, 0, 0),
        ({"priority": "low", "retain": 60}, 0, 0),
        ({"nostore": True, "priority": "high"}, 0, 0),
    ],
)
def test_a_shared_store_gets_at_once_what_is_kept_and_never_what_is_of_low_priority(
    hints: object, stored: int, used_again: int
) -> None:
    scene = Scene()
    store: Any = Store()
    scene.manager.put_behind([store], most_tokens=1000)
    scene.manager.grow(Grown(SLOTS, 0, is_over=True))
    keys = scene.serve(0, 10, hints)
    assert len(store.given) == stored
    context = scene.context({"kvtier": hints} if hints is not None else None)
    scene.manager.touch(keys, context)
    assert len(store.given) == used_again
