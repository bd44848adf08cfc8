"""What pieces come to: each promise kept or not, and a table that leaves nothing unsaid."""

from typing import Any

import pytest
from tests.bench.card.budget import Done
from tests.bench.card.kinds import KINDS
from tests.bench.card.piece import pieces_of
from tests.bench.card.results import all_equal, dma_s, results, verdicts
from tests.bench.card.settings import CUDA, Settings, default_sides, planned_arguments
from tests.bench.card.table import busiest, page
from tests.unit.bench.card.lives import copies, lived

from kvtier_connector.bench.choices import EVERY_SIDE
from kvtier_connector.config import GIB

SETTINGS = Settings.on(CUDA, "qwen3-8b", default_sides(CUDA), 4)


def done(**changes: Any) -> dict[str, Any]:  # noqa: ANN401 - of a life, by a side
    """All pieces of a run, kvtier at its promises and better."""
    found: dict[str, Any] = {}
    for piece in pieces_of(SETTINGS):
        how = {
            "tier": piece.what != "none",
            **({"tier_s": 0.09, "round_s": 2.7} if piece.what == "vllm" else {}),
        }
        figures: Any = lived(SETTINGS, **(how | changes.get(piece.what, {})))
        found[piece.name] = {"seconds": 60.0, "figures": copies() if piece.kind == "copies" else figures}
    return found


def outcomes(measured: Done) -> list[str]:
    return [each.outcome for each in verdicts(results(SETTINGS, measured))]


def test_a_run_is_as_planned_and_its_workload_fits_the_tier_alone() -> None:
    assert "--enforce-eager" not in SETTINGS.arguments
    assert Settings.of(SETTINGS.as_json()) == SETTINGS
    high = SETTINGS.workloads["high_cache"]
    shared_tokens = high.groups * high.system_tokens
    assert SETTINGS.device_tokens < shared_tokens < SETTINGS.tier_tokens
    assert {*SETTINGS.sides} == {*EVERY_SIDE}


def test_every_kind_of_model_can_be_planned() -> None:
    for name, kind in KINDS.items():
        arguments = planned_arguments(f"kvtier/{name}", kind.config, tier_bytes=8 * GIB, engine=kind.engine)
        assert "--kv-transfer-config" in arguments


def test_all_promises_kept() -> None:
    figures = results(SETTINGS, done())
    assert dma_s(figures) == pytest.approx(15_360 * 147_456 / 50e9)
    assert outcomes(done()) == ["met"] * 8
    assert all_equal(figures)
    assert (figures["left_out"], figures["not_there"]) == ([], {})


@pytest.mark.parametrize(
    ("changes", "missed"),
    [
        ({"kvtier": {"tier_s": 0.0626}}, [0]),  # 1.25 device hits are 62.5 ms
        ({"vllm": {"tier_s": 0.0799}}, [1]),
        ({"kvtier": {"round_s": 2.1}}, [4, 5]),
    ],
)
def test_promises_that_were_not_kept(changes: dict[str, Any], missed: list[int]) -> None:
    found = outcomes(done(**changes))
    assert [number for number, outcome in enumerate(found) if outcome == "missed"] == missed


def test_a_promise_whose_other_side_is_missing_is_not_measured() -> None:
    alone = {name: each for name, each in done().items() if name.startswith("life.kvtier.")}
    found = outcomes(alone)
    assert found == ["not measured"] * 6 + ["met", "not measured"]
    assert outcomes({}) == ["not measured"] * 8


def test_one_other_token_from_one_cache_of_one_side_shows() -> None:
    measured = done()
    measured["life.vllm.1"]["figures"]["answers"][1] = {"cold": [[1, 2]], "device_hit": [[1, 2], [1, 3]]}
    assert not all_equal(results(SETTINGS, measured))
    assert "**NOT EQUAL**" in page(SETTINGS, {}, results(SETTINGS, measured), {})


def test_sides_lived_unlike_often_are_compared_in_common_turns() -> None:
    measured = done()
    del measured["life.vllm.2"]
    figures = results(SETTINGS, measured)
    assert (figures["ttft"]["turns"]["kvtier"], figures["ttft"]["turns"]["vllm"]) == (2, 1)
    assert figures["workloads"]["low_cache"]["rounds"] == 1
    assert figures["left_out"] == ["life.vllm.2"]


def test_the_page_says_everything() -> None:
    measured = done()
    del measured["life.none.2"]
    measured["life.lmcache.1"] = {"seconds": 0.0, "absent": "lmcache is not installed"}
    measured["kind.mla"] = {"seconds": 9.0, "error": "the engine died: out of memory"}
    text = page(
        SETTINGS, {"card": "NVIDIA H200"}, results(SETTINGS, measured), {"kvtier": "a;step 3\na;wait 1"}
    )
    for line in (
        "card NVIDIA H200",
        "as planned: `--served-model-name Qwen/Qwen3-8B",
        "outputs on all sides: **equal**",
        "| kvtier, layered loads off | 1 | 20.0 | 500.0 (500.0 to 500.0) |",
        "| 128 | to device | 42.0 | 50.0 | 0.84 |",
        "| full attention, fp8 cache | ",
        "| cold, over vLLM's own | 1.000 | <= 1.02 | met |",
        "Where kvtier serves device hits, samples end in: step 75%; wait 25%.",
        "- `life.lmcache.1`: lmcache is not installed",
        "- `kind.mla`: the engine died: out of memory",
        "- left out, for want of time: `life.none.2`",
    ):
        assert line in text, line


def test_where_samples_end() -> None:
    samples = "main (a.py:1);step (b.py:7) 6\nmain (a.py:1);wait (c.py:2) 3\nmain (a.py:1) 1\n"
    assert busiest(samples, 2) == [("step (b.py:7)", 0.6), ("wait (c.py:2)", 0.3)]
