from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.scorer.config.any_input import INPUTS
from tests.unit.scorer.config.flavors.strict import VERSIONS, Document, decode, parameters, weights

from kvtier_common.tier import Tier
from kvtier_scorer.config.flavors import picker_config
from kvtier_scorer.config.flavors.gaie import FIXED_ENTRIES
from kvtier_scorer.config.model import (
    PLUGINS,
    PREFIX_SCORERS,
    NoScorerError,
    PickerConfigError,
    PickerInput,
    ScorerWeights,
    TierTokens,
    UnsupportedVersionError,
)

# Qwen3-32B in bf16 takes 262,144 bytes a token: 100 GiB hold 409,600 tokens.
EXAMPLE = PickerInput(
    weights=ScorerWeights({"queue": 2, "kv_cache_utilization": 2, "gpu_prefix": 1, "cpu_prefix": 1}),
    tokens=TierTokens({Tier.GPU: 120_000, Tier.CPU: 409_600}),
    engine_block_tokens=16,
    max_prefix_tokens=40_960,
)
THREE = replace(
    EXAMPLE,
    weights=EXAMPLE.weights | {"disk_prefix": 3},
    tokens=EXAMPLE.tokens | {Tier.DISK: 4_194_304},
)
ALL = sorted(VERSIONS)
TELLS_TIERS_APART = [each for each in ALL if each != ("gaie", "1.5")]


def rendered(flavor: str, version: str, asked: PickerInput) -> Document:
    return decode(flavor, version, picker_config(flavor, replace(asked, version=version)).text)


@pytest.mark.parametrize(
    ("flavor", "version", "tokens_per_entry", "cpu", "gpu"),
    [
        ("llm-d", "0.9", 64, 6_400, 1_875),
        ("llm-d", "0.10", 64, 6_400, 1_875),
        ("gaie", "1.4", 16, 25_600, 7_500),
        ("builtin", "0.1", 16, 25_600, 7_500),
    ],
)
def test_capacities_of_the_example(
    flavor: str, version: str, tokens_per_entry: int, cpu: int, gpu: int
) -> None:
    config = picker_config(flavor, replace(EXAMPLE, version=version))
    assert config.tokens_per_entry == tokens_per_entry
    assert config.entries == {Tier.GPU: gpu, Tier.CPU: cpu}
    document = decode(flavor, version, config.text)
    holder = "cpu-prefix-cache-producer" if flavor == "llm-d" else "cpu-prefix-cache-scorer"
    assert parameters(document, holder)["lruCapacityPerServer"] == cpu


@pytest.mark.parametrize(("flavor", "version"), TELLS_TIERS_APART)
def test_weights_are_those_asked_for(flavor: str, version: str) -> None:
    assert weights(rendered(flavor, version, THREE)) == {
        "queue-scorer": 2,
        "kv-cache-utilization-scorer": 2,
        "gpu-prefix-cache-scorer": 1,
        "cpu-prefix-cache-scorer": 1,
        "disk-prefix-cache-scorer": 3,
    }


@pytest.mark.parametrize(("flavor", "version"), ALL)
def test_other_pickers_are_not_told_of_a_scorer_that_only_ours_has(
    flavor: str, version: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(PLUGINS, "toy", "toy-scorer")
    asked = replace(EXAMPLE, version=version, weights=EXAMPLE.weights | {"toy": 7})
    config = picker_config(flavor, asked)
    assert ("toy-scorer" in config.text) == (flavor == "builtin")
    assert config.unread == (() if flavor == "builtin" else ("toy",))


@pytest.mark.parametrize(("flavor", "version"), TELLS_TIERS_APART)
def test_a_scorer_of_weight_0_is_left_out_with_its_producer(flavor: str, version: str) -> None:
    asked = replace(EXAMPLE, weights=EXAMPLE.weights | {"gpu_prefix": 0, "queue": 0})
    document = rendered(flavor, version, asked)
    assert set(weights(document)) == {"kv-cache-utilization-scorer", "cpu-prefix-cache-scorer"}
    assert not [plugin for plugin in document.plugins if (plugin.name or "").startswith("gpu")]


@pytest.mark.parametrize(("flavor", "version"), TELLS_TIERS_APART)
def test_a_tier_that_does_not_exist_has_no_scorer(flavor: str, version: str) -> None:
    asked = replace(THREE, tokens=TierTokens({Tier.GPU: 120_000}))
    assert set(weights(rendered(flavor, version, asked))) == {
        "queue-scorer",
        "kv-cache-utilization-scorer",
        "gpu-prefix-cache-scorer",
    }


@pytest.mark.parametrize(("flavor", "version"), [each for each in TELLS_TIERS_APART if each[0] != "builtin"])
def test_a_device_cache_of_unknown_size_is_asked_of_the_engine(flavor: str, version: str) -> None:
    asked = replace(EXAMPLE, tokens=EXAMPLE.tokens | {Tier.GPU: None})
    document = rendered(flavor, version, asked)
    suffix = "producer" if flavor == "llm-d" else "scorer"
    gpu = parameters(document, f"gpu-prefix-cache-{suffix}")
    assert gpu["autoTune"] is True
    assert "lruCapacityPerServer" not in gpu
    assert parameters(document, f"cpu-prefix-cache-{suffix}")["autoTune"] is False


def test_llm_d_says_that_an_unknown_device_cache_is_counted_in_the_wrong_blocks() -> None:
    unknown = replace(EXAMPLE, tokens=EXAMPLE.tokens | {Tier.GPU: None})
    said = picker_config("llm-d", unknown)
    assert said.text.startswith("# the size of the device cache is not known")
    assert "4 times too large\n" in said.text
    # it is so only until the operator has asked an engine
    assert said.warnings == ()
    for known in (replace(unknown, engine_block_tokens=64), EXAMPLE):
        assert "too large" not in picker_config("llm-d", known).text


def test_llm_d_says_that_a_later_version_was_not_tried() -> None:
    [warning] = picker_config("llm-d", replace(EXAMPLE, version="v0.11.2")).warnings
    assert "v0.11.2 is later than 0.10" in warning
    assert "prefix_match_unit" in warning
    assert picker_config("llm-d", replace(EXAMPLE, version="0.10.7")).warnings == ()


def test_llm_d_after_0_10_may_count_larger_blocks_in_smaller_entries() -> None:
    hybrid = replace(EXAMPLE, tokens=EXAMPLE.tokens | {Tier.GPU: None}, engine_block_tokens=784)
    assert picker_config("llm-d", hybrid).warnings == ()
    [_, warning] = picker_config("llm-d", replace(hybrid, version="0.11")).warnings
    assert "prefix_match_unit" in warning
    assert "up to 12.25 times too small" in warning


def test_llm_d_takes_larger_engine_blocks_as_they_are() -> None:
    config = picker_config("llm-d", replace(EXAMPLE, engine_block_tokens=128))
    assert (config.tokens_per_entry, config.entries.get(Tier.CPU)) == (128, 3_200)


def test_gaie_1_4_sees_the_whole_prompt() -> None:
    name = "cpu-prefix-cache-scorer"
    assert parameters(rendered("gaie", "1.4", EXAMPLE), name)["maxPrefixBlocksToMatch"] == 2_560
    unknown = replace(EXAMPLE, max_prefix_tokens=None)
    assert parameters(rendered("gaie", "1.4", unknown), name)["maxPrefixBlocksToMatch"] == 8_192


def test_llm_d_sees_the_whole_prompt() -> None:
    long = replace(EXAMPLE, max_prefix_tokens=1_000_000)
    name = "cpu-prefix-cache-producer"
    assert parameters(rendered("llm-d", "0.10", long), name)["maxPrefixTokensToMatch"] == 1_000_000


def test_gaie_1_5_sizes_its_one_index_by_the_size_of_an_entry() -> None:
    config = picker_config("gaie", replace(EXAMPLE, version="1.5"))
    document = decode("gaie", "1.5", config.text)
    assert weights(document)["prefix-cache-scorer"] == 2
    assert parameters(document, "approx-prefix-cache-producer")["blockSizeTokens"] == 14
    assert config.entries == {Tier.CPU: FIXED_ENTRIES}
    assert FIXED_ENTRIES * config.tokens_per_entry >= 409_600
    [warning] = config.warnings
    assert "ignores lruCapacityPerServer" in warning
    assert f"# {warning}\n" in config.text


def test_gaie_1_5_takes_the_largest_tier_that_has_a_weight() -> None:
    config = picker_config("gaie", replace(THREE, version="1.5"))
    assert config.entries.get(Tier.DISK) == FIXED_ENTRIES
    assert config.tokens_per_entry == 135  # ceil(4,194,304 / 31,250)
    assert weights(decode("gaie", "1.5", config.text))["prefix-cache-scorer"] == 5


def test_gaie_1_5_keeps_entries_of_a_small_tier_large_enough_to_hash() -> None:
    small = replace(EXAMPLE, tokens=TierTokens({Tier.GPU: 1_000, Tier.CPU: 2_000}), version="1.5")
    assert picker_config("gaie", small).tokens_per_entry == 8


@pytest.mark.parametrize(
    ("flavor", "version"),
    [
        ("llm-d", "0.8"),
        ("llm-d", "1.0"),
        ("gaie", "1.3"),
        ("gaie", "1.6"),
        ("gaie", "2.4"),
        ("gaie", "1"),
        ("builtin", "9.9"),
        ("llm-d", "main"),
    ],
)
def test_other_versions_are_refused(flavor: str, version: str) -> None:
    with pytest.raises(UnsupportedVersionError, match=version):
        picker_config(flavor, replace(EXAMPLE, version=version))


@pytest.mark.parametrize("version", ["v1.4", "1.4.0", "v1.4.2"])
def test_versions_may_be_written_as_tags(version: str) -> None:
    asked = replace(EXAMPLE, version=version)
    assert picker_config("gaie", asked).text == picker_config("gaie", replace(EXAMPLE, version="1.4")).text


@pytest.mark.parametrize("flavor", ["llm-d", "gaie", "builtin"])
def test_no_scorer_left_is_refused(flavor: str) -> None:
    disk_only = ScorerWeights(
        {"queue": 0, "kv_cache_utilization": 0, "gpu_prefix": 0, "cpu_prefix": 0, "disk_prefix": 1}
    )
    with pytest.raises(NoScorerError):
        picker_config(flavor, replace(EXAMPLE, weights=disk_only))
    with pytest.raises(NoScorerError):
        picker_config("gaie", replace(EXAMPLE, weights=disk_only, version="1.5"))


def test_an_unknown_flavour_is_refused_by_name() -> None:
    with pytest.raises(PickerConfigError, match="nginx"):
        picker_config("nginx", EXAMPLE)


@settings(max_examples=60)
@given(asked=INPUTS, which=st.sampled_from(ALL))
def test_whatever_is_asked_the_picker_accepts_it(asked: PickerInput, which: tuple[str, str]) -> None:
    flavor, version = which
    try:
        config = picker_config(flavor, replace(asked, version=version))
    except NoScorerError:
        existing = {*PLUGINS, *(PREFIX_SCORERS[tier] for tier in asked.tokens)}
        assert not any(weight for name, weight in asked.weights.items() if name in existing)
        return
    decode(flavor, version, config.text)
    again = picker_config(flavor, replace(asked, version=version))
    assert again == config


@settings(max_examples=60)
@given(less=st.integers(1, 10**9), more=st.integers(0, 10**9), which=st.sampled_from(TELLS_TIERS_APART))
def test_entries_hold_the_tier_and_never_shrink_when_it_grows(
    less: int, more: int, which: tuple[str, str]
) -> None:
    flavor, version = which
    small, large = (
        picker_config(flavor, replace(EXAMPLE, version=version, tokens=EXAMPLE.tokens | {Tier.CPU: tokens}))
        for tokens in (less, less + more)
    )
    few, many = small.entries[Tier.CPU], large.entries[Tier.CPU]
    assert few is not None
    assert many is not None
    assert few <= many
    assert 0 <= few * small.tokens_per_entry - less < small.tokens_per_entry
