"""No earlier block is served after a clear, in any tier and whatever is under way; tokens stay the same."""

import shutil
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from tests.engine.connector.disk_engine import QUIET_S, DiskEngine, with_faults
from tests.engine.connector.prompts import CACHED, PROMPTS, answers, prompt
from tests.unit.connector.disk.rig.faulty_engine import Keep

from kvtier_common.tier import Tier
from kvtier_connector.core.control.orders import ClearOrder

# What vLLM and PyTorch warn of is not ours.
pytestmark = [
    pytest.mark.engine,
    pytest.mark.usefixtures("disk_pays"),
    pytest.mark.filterwarnings("ignore"),
]
NOTHING = [0] * len(PROMPTS)
LONGEST = PROMPTS[-1]
EVERYTHING = ClearOrder(frozenset(Tier))


class ControlledEngine(DiskEngine):
    """An engine in this process, whose loop is the test: orders are done between its steps."""

    def __init__(self, llm: Any) -> None:  # noqa: ANN401 - vLLM has no types
        from kvtier_connector.vllm.control.control import Control  # noqa: PLC0415 - imports vLLM
        from kvtier_connector.vllm.upstream.device_cache import DeviceCache  # noqa: PLC0415 - as above
        from kvtier_connector.vllm.upstream.engine_loop import hashed_prompt  # noqa: PLC0415 - as above

        super().__init__(llm)
        connector = self.connector
        self.control = Control(
            connector._upstream,
            connector._manager,
            DeviceCache(connector._kv_cache_manager),
            rank=0,
            most_tokens=self._core.vllm_config.model_config.max_model_len,
            tenants=(),
            hash_prompt=partial(hashed_prompt, self._core),
            call=lambda deed, _timeout_s: deed(),
            hold=connector._upstream.hold_manager,
        )
        self.control._tend = lambda name, for_s: None  # type: ignore[method-assign] # noqa: ARG005 - that thread is the test, too

    def order(self, **fields: object) -> dict[str, Any]:
        said = self.control.answer(fields)
        assert "error" not in said, said
        return said

    def begin(self, ids: list[int], tokens: int = 8) -> None:
        from vllm import SamplingParams  # noqa: PLC0415 - takes seconds

        how = SamplingParams(temperature=0, max_tokens=tokens, ignore_eos=True, detokenize=False)
        self.llm.llm_engine.add_request("under way", {"prompt_token_ids": ids}, how)

    def step(self) -> tuple[list[int], int] | None:
        """Do a step; returns what was answered once that is all, and how many tokens were cached."""
        for output in self.llm.llm_engine.step():
            if output.finished:
                return list(output.outputs[0].token_ids), output.num_cached_tokens
        return None

    def end(self) -> tuple[list[int], int]:
        while True:
            if (ended := self.step()) is not None:
                return ended


@pytest.fixture(scope="module")
def controlled(disk_engine: DiskEngine) -> ControlledEngine:
    return ControlledEngine(disk_engine.llm)


@pytest.fixture
def warm(controlled: ControlledEngine, known: Path, tmp_path: Path) -> Iterator[ControlledEngine]:
    """Has all of PROMPTS on disk, and the last of them in memory and on the device too."""
    controlled.restart(Path(shutil.copytree(known, tmp_path / "disk")))
    controlled.control._prefetches = None
    controlled.ask([LONGEST])
    yield controlled
    controlled.settle()


def test_nothing_of_before_is_found_in_any_tier_nor_by_the_next_start(
    warm: ControlledEngine, cold: list[list[int]], tmp_path: Path
) -> None:
    said = warm.order(verb="clear")
    assert said["cleared"]["gpu"] >= 20
    assert said["cleared"]["cpu"] >= 20
    assert said["cleared"]["disk"] >= 39
    assert warm.ask() == (cold, NOTHING)
    assert warm.ask() == (cold, CACHED), "what came since is kept"
    warm.order(verb="clear")
    warm.restart(tmp_path / "disk")
    assert warm.ask() == (cold, NOTHING)
    warm.restart(tmp_path / "disk")
    assert warm.ask() == (cold, CACHED), "and by the next start, too"


def test_one_tier_alone_leaves_the_others(warm: ControlledEngine, cold: list[list[int]]) -> None:
    for tier in ("gpu", "cpu"):  # each time the next one has it, and fills those before it
        assert warm.order(verb="clear", tier=tier)["cleared"].keys() == {tier}
        assert warm.ask([LONGEST]) == ([cold[-1]], [640])
    for tier in ("cpu", "gpu", "disk"):
        assert warm.order(verb="clear", tier=tier)["cleared"].keys() == {tier}
    assert warm.ask([LONGEST]) == ([cold[-1]], [0])


def test_a_prompts_blocks_are_cleared_and_those_of_others_are_not(
    warm: ControlledEngine, cold: list[list[int]]
) -> None:
    said = warm.order(verb="clear", tokens=[LONGEST, PROMPTS[3]])
    assert "after the prompt" in said["note"]
    wanted = [
        cached if ids not in (LONGEST, PROMPTS[3]) else 0 for ids, cached in zip(PROMPTS, CACHED, strict=True)
    ]
    assert warm.ask() == (cold, wanted)


def test_a_tenants_clear_after_a_start_leaves_nothing_that_may_be_the_tenants(
    warm: ControlledEngine, cold: list[list[int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(warm.control, "_tenants", ("a",))
    said = warm.order(verb="clear", share="a")
    strays = said["of_unknown_owner"]
    assert strays == {tier: said["cleared"][tier] for tier in ("cpu", "disk")}
    assert strays["cpu"] >= 20
    assert strays["disk"] >= 39
    assert warm.ask() == (cold, NOTHING)


def test_a_salted_prompts_blocks_are_its_own(warm: ControlledEngine, cold: list[list[int]]) -> None:
    assert warm.order(verb="clear", tokens=[LONGEST], cache_salt="another's")["cleared"]["disk"] == 0
    assert warm.ask([LONGEST]) == ([cold[-1]], [640])


def test_a_request_under_way_goes_on_and_leaves_nothing(
    warm: ControlledEngine, cold: list[list[int]]
) -> None:
    ids = prompt(700, 5)
    warm.order(verb="clear")
    alone = answers(warm.llm, [ids], tokens=40)[0][0]
    warm.order(verb="clear")
    warm.begin(ids, tokens=40)
    for _ in range(5):
        assert warm.step() is None
    assert warm.order(verb="clear")["requests_under_way"] == 1
    assert warm.end()[0] == alone
    warm.settle()
    assert answers(warm.llm, [ids + alone[:4]], tokens=1)[0][1] == 0, "none of its blocks of before"
    assert answers(warm.llm, [ids + alone], tokens=1)[0][1] == 704, "nor that which it filled afterwards"
    assert warm.ask() == (cold, NOTHING)


def test_stores_under_way_bring_nothing_back(warm: ControlledEngine) -> None:
    ids = prompt(640, 6)
    faulty = with_faults(warm)
    faulty.fault(lambda _io: Keep())
    answers(warm.llm, [ids], tokens=1)  # its stores to memory go on, and those to disk behind them
    warm._finish_stores()
    warm.connector._manager.behind.poll()
    assert warm.disk.is_busy
    faulty.fault(lambda _io: None)
    warm.control._clearing.clear(EVERYTHING)
    faulty.release()
    warm.settle()
    while warm.control._clearing.is_forgetting:  # until the disk's thread has put that down
        warm.disk.wait(1)
        warm.connector._manager.behind.poll()
    assert answers(warm.llm, [ids], tokens=1)[0][1] == 0


def test_loads_under_way_bring_nothing_back(warm: ControlledEngine, cold: list[list[int]]) -> None:
    warm.order(verb="clear", tier="gpu")
    warm.order(verb="clear", tier="cpu")
    faulty = with_faults(warm)
    faulty.fault(lambda _io: Keep())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            warm.connector._manager.behind, "is_quick", lambda _tokens: False
        )  # no step waits for it
        warm.begin(LONGEST)
        assert warm.step() is None
        faulty.await_kept(1)
    faulty.fault(lambda _io: None)
    warm.control._clearing.clear(EVERYTHING)
    faulty.release()
    assert warm.end() == (cold[-1], 0), "it waited for what is not there any more, and computed"


def test_a_prefetch_brings_a_prompt_from_disk_to_memory(
    warm: ControlledEngine, cold: list[list[int]]
) -> None:
    warm.order(verb="clear", tier="gpu")
    warm.order(verb="clear", tier="cpu")
    said = warm.order(verb="prefetch", tokens=LONGEST + prompt(64, 9))
    assert said["tokens"] == 704
    assert said["absent_tokens"] == 64
    assert said["in_memory_tokens"] + said["coming_tokens"] == 640
    prefetches = warm.control._prefetches
    while prefetches:
        warm.disk.wait(QUIET_S)
        prefetches.look(*prefetches._under_way)
    assert warm.order(verb="prefetch", tokens=LONGEST)["in_memory_tokens"] == 640
    before = warm.order(verb="status")["tiers"]
    warm.order(verb="clear", tier="disk")
    assert warm.ask([LONGEST]) == ([cold[-1]], [640])
    assert {tier["tier"] for tier in before} == {"gpu", "cpu", "disk"}
