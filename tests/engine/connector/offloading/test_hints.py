"""Real engines whose requests say what they know: what stays in a small tier, and whose it is."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from tests.engine.connector.memory_tier import TIER
from tests.engine.connector.prompts import SMALL_DEVICE, hinted_answer, prompt

from kvtier_common.metrics import hints as names
from kvtier_connector.config import MIB, kv_transfer_config

pytestmark = [pytest.mark.engine, pytest.mark.filterwarnings("ignore")]

if TYPE_CHECKING:
    from vllm import LLM

# The tier holds 32 chunks of 32 tokens; a prompt here has ten of them and a token.
HINTED = replace(
    TIER, cpu_capacity_bytes=MIB, cpu_retained_share=0.5, tenants={"a": {"guaranteed": 0.4}, "b": {}}
)
LENGTH = 321
WHOLE = 320


@pytest.fixture(scope="module")
def tier(engine: Callable[..., Any], cold_tokens: list[list[int]]) -> Iterator[Any]:
    del cold_tokens  # a second engine in one process takes the first one's metrics away
    with engine(kv_transfer_config(HINTED), **SMALL_DEVICE) as llm:
        yield llm


@pytest.fixture(autouse=True)
def _empty(tier: "LLM") -> None:
    assert tier.reset_prefix_cache(reset_connector=True)


def ask(llm: "LLM", seed: int, hints: object = None, salt: str | None = None) -> tuple[list[int], int]:
    """Return what a prompt is answered, and how many of its tokens were cached."""
    return hinted_answer(llm, prompt(LENGTH, seed), hints, salt)


def forget(llm: "LLM") -> None:
    """Put other prompts into all blocks of the device and have them forgotten; the tier stays as it is."""
    for seed in range(2000, 2006):
        ask(llm, seed, {"nostore": True})
    assert llm.reset_prefix_cache()


def flood(llm: "LLM", salt: str | None = None) -> None:
    """Put three times as much into the tier as it holds, and have nothing left on the device."""
    for seed in range(1000, 1010):
        ask(llm, seed, salt=salt)
    forget(llm)


def series(llm: "LLM", name: str, **labels: str) -> float:
    """Return one series of a metric."""
    found = [
        each for each in llm.get_metrics() if each.name == name and labels.items() <= each.labels.items()
    ]
    return float(sum(each.value for each in found))


def test_a_retained_prompt_survives_a_flood_and_answers_the_same(tier: "LLM") -> None:
    kept, _ = ask(tier, 1, {"retain": 3600, "priority": "high"})
    ask(tier, 2)
    flood(tier)
    assert ask(tier, 2)[1] == 0
    assert series(tier, names.RETAINED_BYTES, tier="cpu") == WHOLE * 1024
    assert ask(tier, 1) == (kept, WHOLE)


def test_a_tenants_flood_leaves_what_another_has_by_right(tier: "LLM") -> None:
    kept, _ = ask(tier, 1, salt="a:x")
    flood(tier, salt="b:y")
    assert ask(tier, 1, salt="a:x") == (kept, WHOLE)
    assert series(tier, names.TENANT_HIT_TOKENS, tenant="a") >= WHOLE
    assert series(tier, names.TENANT_HELD_BYTES, tenant="a", tier="cpu") == WHOLE * 1024


def test_a_prompt_that_is_not_to_be_stored_is_not_in_the_tier(tier: "LLM") -> None:
    first, _ = ask(tier, 3, {"nostore": True})
    forget(tier)
    assert ask(tier, 3) == (first, 0)


def test_bad_hints_change_nothing_but_a_counter(tier: "LLM") -> None:
    before = series(tier, names.REFUSED)
    first, _ = ask(tier, 4, {"retain": "long", "priority": 7, "pin": True, "share": "nobody"})
    forget(tier)
    assert ask(tier, 4) == (first, WHOLE)
    assert series(tier, names.REFUSED) - before == 4


def test_a_tenants_hit_rate_is_of_what_the_device_did_not_have(tier: "LLM") -> None:
    names_of = (names.TENANT_ASKED_TOKENS, names.TENANT_HIT_TOKENS)
    before = [series(tier, name, tenant="b") for name in names_of]
    ask(tier, 6, salt="b:x")  # nobody has it
    ask(tier, 6, salt="b:x")  # the device has all but its last token
    forget(tier)
    ask(tier, 6, salt="b:x")  # the tier has as much
    after = [series(tier, name, tenant="b") for name in names_of]
    assert [now - then for now, then in zip(after, before, strict=True)] == [LENGTH + 1 + LENGTH, WHOLE]


def test_no_salt_finds_what_another_has_stored(tier: "LLM") -> None:
    first, _ = ask(tier, 5, salt="a:x")
    forget(tier)
    assert ask(tier, 5, salt="b:x") == (first, 0)
    forget(tier)
    assert ask(tier, 5, salt="a:x") == (first, WHOLE)
