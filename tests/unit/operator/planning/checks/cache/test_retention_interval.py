import pytest
from tests.cases.checks import PASS, REJECT, WARN, says, verdict
from tests.cases.planning import resource, sized

from kvtier_operator.api.resource import KVCacheTier
from kvtier_operator.planning.checks.cache_blocks import retention_interval
from kvtier_operator.planning.observed import Observed
from kvtier_operator.planning.planner import make_plan

OPTION = "--prefix-cache-retention-interval"
PLAIN, WINDOWS, STATES = "Qwen/Qwen3-32B", "openai/gpt-oss-120b", "Qwen/Qwen3-Next-80B-A3B-Instruct"


def one(model: str, *arguments: str, backend: str = "KVTier") -> KVCacheTier:
    return resource(model, engine={"extraArgs": [*arguments]}, backend=backend)


@pytest.mark.parametrize("model", [PLAIN, WINDOWS, STATES])
@pytest.mark.parametrize("arguments", [[], [OPTION, "0"], [OPTION, "1088", f"{OPTION}=0"]])
def test_vllm_s_own(model: str, arguments: list[str]) -> None:
    says(verdict(retention_interval, one(model, *arguments)), PASS, "Passed")


def test_a_model_that_keeps_every_token_takes_none() -> None:
    result = verdict(retention_interval, one(PLAIN, OPTION, "4096"))
    says(result, REJECT, "RetentionIntervalNotSupported", "4096", "remove it")
    assert result.field == "spec.engine.extraArgs[0]"
    says(verdict(retention_interval, one(PLAIN, OPTION, "None")), PASS, "Passed")
    in_full = one(WINDOWS, OPTION, "4096", backend="LMCache")
    says(verdict(retention_interval, in_full), REJECT, "RetentionIntervalNotSupported")


def test_only_multiples_of_blocks_and_chunks() -> None:
    # blocks of 544 tokens, chunks of one
    says(
        verdict(retention_interval, one(STATES, OPTION, "1000")),
        REJECT,
        "RetentionIntervalNotSupported",
        "multiples of 544",
        "set it to 1088",
    )
    says(verdict(retention_interval, one(WINDOWS, OPTION, "96")), REJECT, "RetentionIntervalNotSupported")
    says(verdict(retention_interval, one(WINDOWS, OPTION, "96", backend="Native")), WARN, "StatesKeptOften")


def test_what_is_kept_more_often_takes_more() -> None:
    result = verdict(retention_interval, one(STATES, f"{OPTION}=5440"))
    says(result, WARN, "StatesKeptOften", "every 5,440 tokens", "a prefix of 262,144 tokens")
    says(verdict(retention_interval, one(STATES, OPTION, "None")), WARN, "StatesKeptOften", "every 544")


@pytest.mark.parametrize(
    ("interval", "kept"),
    [
        ("4096", "15.47 GiB"),  # 480 MiB x (1 + 131,072 / 4,096)
        ("512", "60.47 GiB"),  # windows of 1,024 tokens that share their halves: every token is kept
        ("None", "60.47 GiB"),
    ],
)
def test_the_plan_counts_what_the_warning_says(interval: str, kept: str) -> None:
    gemma = one("google/gemma-3-27b-it", OPTION, interval)
    result = verdict(retention_interval, gemma)
    says(result, WARN, "StatesKeptOften", kept, "of 131,072 tokens", "480 MiB", "for the picker")
    tiers, _, _ = sized(gemma)
    beside = {"15.47 GiB": 33 * 480, "60.47 GiB": 129 * 480}[kept] << 20
    part = 131_072 * 81_920 / (131_072 * 81_920 + beside)
    assert tiers.cpu.tokens == pytest.approx((100 << 30) / 81_920 * part, rel=0.001)
    (tokens,) = (each.how for each in make_plan(gemma, Observed()).figures if each.name == "CPU tier tokens")
    assert f"{kept} a prefix" in tokens


@pytest.mark.parametrize("value", ["many", "-16", "1.5", "٣"])
def test_what_is_no_number(value: str) -> None:
    result = verdict(retention_interval, one(STATES, f"{OPTION}={value}"))
    says(result, REJECT, "RetentionIntervalNotSupported", value)
