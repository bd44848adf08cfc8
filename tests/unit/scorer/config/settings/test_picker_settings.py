from dataclasses import replace

import pytest
from tests.unit.scorer.config.settings.example import EXAMPLE, TEXT, weights

from kvtier_common.tier import Tier
from kvtier_scorer.config.contract import HintPolicy, ShareFrom
from kvtier_scorer.config.flavors import picker_config
from kvtier_scorer.config.model import (
    KV_CACHE_UTILIZATION,
    PREFIX_SCORERS,
    QUEUE,
    NoScorerError,
    PickerConfigError,
)
from kvtier_scorer.config.parse import parse_settings
from kvtier_scorer.config.settings import ASSUMED_ENTRIES, PickerSettings, Shed, TokenizationMode


def with_section(text: str) -> PickerSettings:
    return parse_settings(f"{TEXT}{text}\n")


def test_the_rendered_example() -> None:
    parsed = parse_settings(TEXT)
    assert weights(parsed) == {
        QUEUE: 2,
        KV_CACHE_UTILIZATION: 2,
        PREFIX_SCORERS[Tier.GPU]: 1,
        PREFIX_SCORERS[Tier.CPU]: 1,
    }
    assert parsed.prefix is not None
    assert (parsed.prefix.block_tokens, parsed.prefix.max_blocks) == (16, 2_560)
    assert parsed.prefix.entries == {Tier.GPU: None, Tier.CPU: 25_600}
    assert parsed.prefix.first_entries == {Tier.GPU: ASSUMED_ENTRIES, Tier.CPU: 25_600}


def test_defaults() -> None:
    parsed = parse_settings(TEXT)
    assert (parsed.shedding.shed, parsed.shedding.queue_depth) == (Shed.SHEDDABLE, 5)
    assert parsed.shedding.kv_cache_utilization == 0.8
    assert (parsed.metrics.scrape_interval_s, parsed.metrics.staleness_s) == (0.1, 0.5)
    assert (parsed.events.enabled, parsed.events.port, parsed.events.topic) == (False, 5557, "")
    assert parsed.tokenization.mode is TokenizationMode.ESTIMATE
    assert (parsed.limits.max_body_bytes, parsed.limits.total_body_bytes) == (8 << 20, 64 << 20)


def test_sections() -> None:
    parsed = with_section(
        "shedding: {shed: All, queueDepth: 9, kvCacheUtilization: 0.95}\n"
        "metrics: {scrapeIntervalMs: 200, stalenessMs: 900}\n"
        "events: {enabled: true, port: 6000, topic: kv-events}\n"
        "tokenization: {mode: Tokenizer, path: /models/tokenizer.json}\n"
        "limits: {maxBodyBytes: 2048}"
    )
    assert (parsed.shedding.shed, parsed.shedding.queue_depth) == (Shed.ALL, 9)
    assert (parsed.metrics.scrape_interval_s, parsed.metrics.staleness_s) == (0.2, 0.9)
    assert (parsed.events.port, parsed.events.topic) == (6000, "kv-events")
    assert parsed.tokenization.path == "/models/tokenizer.json"
    assert parsed.limits.max_body_bytes == 2048


def test_whose_hints_count_travels_from_the_plan_to_the_picker() -> None:
    for policy in HintPolicy:
        for share in ShareFrom:
            rendered = picker_config("builtin", replace(EXAMPLE, hints=policy, share_from=share)).text
            parsed = parse_settings(rendered)
            assert (parsed.hints, parsed.share_from) == (policy, share)
    assert "hints" not in TEXT
    with pytest.raises(PickerConfigError, match=r"^hints: must be Accept or Headers or Refuse, not"):
        with_section("hints: refuse")
    with pytest.raises(PickerConfigError, match=r"^shareFrom: must be Header or Client, not"):
        with_section("shareFrom: Key")


def test_what_of_the_cpu_tier_is_retained_travels_likewise() -> None:
    for retained in (0.0, 0.3, 0.5, 1.0):
        assert (
            parse_settings(picker_config("builtin", replace(EXAMPLE, retained=retained)).text).retained
            == retained
        )
    with pytest.raises(PickerConfigError, match=r"^retained: must be"):
        with_section("retained: 1.5")


def test_staleness_follows_the_interval() -> None:
    assert with_section("metrics: {scrapeIntervalMs: 1000}").metrics.staleness_s == 5


def test_a_weight_of_0_leaves_the_scorer_out_with_its_index() -> None:
    parsed = parse_settings(TEXT.replace("weight: 1", "weight: 0"))
    assert set(weights(parsed)) == {QUEUE, KV_CACHE_UTILIZATION}
    assert parsed.prefix is None


def test_a_weight_that_is_left_out_is_1_and_may_be_a_fraction() -> None:
    text = TEXT.replace("    weight: 2\n", "", 1).replace("weight: 2", "weight: 0.25", 1)
    assert weights(parse_settings(text))[QUEUE] == 1
    assert weights(parse_settings(text))[KV_CACHE_UTILIZATION] == 0.25


def test_picker_and_profile_handler_may_be_left_out() -> None:
    text = TEXT.replace("- type: max-score-picker\n- type: single-profile-handler\n", "")
    assert parse_settings(text.replace("  - pluginRef: max-score-picker\n", "")) == parse_settings(TEXT)


def replaced(old: str, new: str, count: int = 1) -> str:
    assert old in TEXT
    return TEXT.replace(old, new, count)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "the configuration must be a mapping"),
        ("- 1", "the configuration must be a mapping"),
        ("a: [", "bad YAML: line 2, column 1: "),
        ("a: 1\nb: 2\na: 3", "bad YAML: line 3, column 1: the key 'a' is there twice"),
        ("? [a, b]\n: 1", "bad YAML: line 1, column 3: a key must be text"),
        ("\x00", "bad YAML: unacceptable character"),
        ("[" * 100_000, "bad YAML: line 1, column 101: more than 100 levels deep"),
        (f"{TEXT}---\n{TEXT}", "2 documents; keep one"),
        (replaced("kvtier.dev/v1alpha1", "llm-d.ai/v1alpha1"), "apiVersion: must be 'kvtier.dev/v1alpha1'"),
        (replaced("EndpointPickerConfig", "Deployment"), "kind: must be 'EndpointPickerConfig'"),
        (f"{TEXT}featureGates: []\n", "the document: unknown field 'featureGates'"),
        (f"{TEXT}1: 2\n", "the document: unknown field '1'"),
        (replaced("- type: queue-scorer", "- type: queue-scorer\n  weight: 3"), "plugins[0]: unknown field"),
        (
            replaced("- type: queue-scorer", "- type: queue-scorer\n  parameters: {max: 3}"),
            "plugins[0].parameters: unknown field 'max'",
        ),
        (
            replaced("type: queue-scorer", "type: lora-scorer"),
            "plugins[0].type: unknown plugin 'lora-scorer'",
        ),
        (
            replaced("tier: gpu", "tier: remote"),
            "plugins[2].parameters.tier: must be gpu or cpu or disk, not 'remote'",
        ),
        (replaced("tier: gpu", "tier: cpu"), "plugins[3]: a second cpu_prefix scorer"),
        (replaced("    tier: gpu\n", ""), "plugins[2].parameters: lacks the field 'tier'"),
        (
            replaced("blockSizeTokens: 16", "blockSizeTokens: '16'"),
            "plugins[2].parameters.blockSizeTokens: must be a whole number, got a string",
        ),
        (
            replaced("blockSizeTokens: 16", "blockSizeTokens: 0"),
            "plugins[2].parameters.blockSizeTokens: must be a whole number >= 1",
        ),
        (
            replaced("blockSizeTokens: 16", "blockSizeTokens: 32"),
            "plugins[3].parameters.blockSizeTokens: 16 differs from 32 of plugins[2]",
        ),
        (
            replaced("maxPrefixTokensToMatch: 40960", "maxPrefixTokensToMatch: 8"),
            "plugins[3].parameters.maxPrefixTokensToMatch: 40960 differs from 8",
        ),
        (
            replaced("lruCapacityPerServer: 25600", "lruCapacityPerServer: 1.5"),
            "plugins[3].parameters.lruCapacityPerServer: must be a whole number",
        ),
        (
            replaced(
                "- type: max-score-picker", "- type: max-score-picker\n  parameters: {maxNumOfEndpoints: 2}"
            ),
            "plugins[4].parameters.maxNumOfEndpoints: must be a whole number <= 1",
        ),
        (
            replaced("name: gpu-prefix-cache-scorer", "name: cpu-prefix-cache-scorer"),
            "plugins[3].name: 'cpu-prefix-cache-scorer' is there twice",
        ),
        (
            replaced("- pluginRef: queue-scorer", "- pluginRef: cue-scorer"),
            "schedulingProfiles[0].plugins[0].pluginRef: no plugin is named 'cue-scorer'",
        ),
        (
            replaced("name: gpu-prefix-cache-scorer", 'name: "two\\nlines"'),
            "schedulingProfiles[0].plugins[2].pluginRef: no plugin is named 'gpu-prefix-cache-scorer'",
        ),
        (
            replaced("- pluginRef: queue-scorer", "- pluginRef: kv-cache-utilization-scorer"),
            "schedulingProfiles[0].plugins[1].pluginRef: 'kv-cache-utilization-scorer' is there twice",
        ),
        (
            replaced("- pluginRef: queue-scorer\n    weight: 2\n  ", ""),
            "plugins[0]: 'queue-scorer' is in no profile",
        ),
        (
            replaced("- pluginRef: max-score-picker", "- pluginRef: single-profile-handler"),
            "schedulingProfiles[0].plugins[4].pluginRef: single-profile-handler belongs to no profile",
        ),
        (
            replaced("- pluginRef: max-score-picker", "- pluginRef: max-score-picker\n    weight: 1"),
            "schedulingProfiles[0].plugins[4].weight: max-score-picker is no scorer",
        ),
        (
            replaced("weight: 2", "weight: -1"),
            "schedulingProfiles[0].plugins[0].weight: must be a number, 0 or more, not -1",
        ),
        (
            replaced("weight: 2", "weight: .nan"),
            "bad YAML: line 25, column 13: .nan is not a number that JSON has",
        ),
        (
            replaced("weight: 2", "weight: .inf"),
            "bad YAML: line 25, column 13: .inf is not a number that JSON has",
        ),
        (
            replaced("weight: 2", "weight: true"),
            "schedulingProfiles[0].plugins[0].weight: must be a number, got true or false",
        ),
        (
            f"{TEXT}- name: second\n  plugins: [{{pluginRef: queue-scorer}}]\n",
            "schedulingProfiles: must have one",
        ),
        (f"{TEXT}shedding:\n", "shedding: must be a mapping, got nothing"),
        (f"{TEXT}shedding: {{shed: Some}}\n", "shedding.shed: must be Sheddable or All or Never, not 'Some'"),
        (f"{TEXT}shedding: {{queueDepth: 0}}\n", "shedding.queueDepth: must be a whole number >= 1"),
        (f"{TEXT}shedding: {{queue_depth: 1}}\n", "shedding: unknown field 'queue_depth'"),
        (
            f"{TEXT}metrics: {{scrapeIntervalMs: 10}}\n",
            "metrics.scrapeIntervalMs: must be a whole number >= 50",
        ),
        (
            f"{TEXT}metrics: {{stalenessMs: 100}}\n",
            "metrics.stalenessMs: 100 must be more than scrapeIntervalMs",
        ),
        (f"{TEXT}events: {{port: 70000}}\n", "events.port: must be a whole number <= 65535"),
        (f"{TEXT}events: {{enabled: true}}\n", "events.enabled: needs tokenization.mode"),
        (f"{TEXT}tokenization: {{mode: Tokenizer}}\n", "tokenization.path: mode Tokenizer needs"),
        (f"{TEXT}tokenization: {{path: /a}}\n", "tokenization.path: mode Estimate reads no file"),
        (
            f"{TEXT}limits: {{totalBodyBytes: 2048}}\n",
            "limits.totalBodyBytes: 2048 must be at least maxBodyBytes, 8388608",
        ),
        (f"{TEXT}limits: {{maxBodyBytes: 10}}\n", "limits.maxBodyBytes: must be a whole number >= 1024"),
    ],
)
def test_a_mistake_is_one_line_with_the_field(text: str, expected: str) -> None:
    with pytest.raises(PickerConfigError) as caught:
        parse_settings(text)
    message = str(caught.value)
    assert message.startswith(expected)
    assert "\n" not in message


def test_no_scorer_left() -> None:
    text = TEXT.replace("weight: 2", "weight: 0").replace("weight: 1", "weight: 0")
    with pytest.raises(NoScorerError, match="no scorer is left"):
        parse_settings(text)
