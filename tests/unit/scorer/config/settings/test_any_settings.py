"""Whatever is rendered, or stands anywhere in a document, is read or refused in one line."""

from dataclasses import replace

import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.scorer.config.settings.example import EXAMPLE, TEXT, weights

from kvtier_common.tier import Tier
from kvtier_scorer.config.errors import NoScorerError, PickerConfigError
from kvtier_scorer.config.flavors import picker_config
from kvtier_scorer.config.model import PickerInput, ScorerWeights, TierTokens
from kvtier_scorer.config.settings.model import ScorerKind
from kvtier_scorer.config.settings.parse import parse_settings

TOKENS = st.none() | st.integers(1, 10**10)


INPUTS = st.builds(
    PickerInput,
    weights=st.builds(ScorerWeights, *[st.integers(0, 1000)] * 5),
    tokens=st.builds(TierTokens, TOKENS, TOKENS, TOKENS),
    engine_block_tokens=st.sampled_from([1, 16, 32, 64, 128, 784]),
    max_prefix_tokens=st.none() | st.integers(1, 10**7),
)


@settings(max_examples=60)
@given(asked=INPUTS)
def test_whatever_is_rendered_is_read_as_it_was_meant(asked: PickerInput) -> None:
    try:
        config = picker_config("builtin", asked)
    except NoScorerError:
        return
    parsed = parse_settings(config.text)
    existing = {
        ScorerKind.QUEUE: asked.weights.queue,
        ScorerKind.KV_CACHE_UTILIZATION: asked.weights.kv_cache_utilization,
        ScorerKind.GPU_PREFIX: asked.weights.gpu_prefix,
        ScorerKind.CPU_PREFIX: 0 if asked.tokens.cpu is None else asked.weights.cpu_prefix,
        ScorerKind.DISK_PREFIX: 0 if asked.tokens.disk is None else asked.weights.disk_prefix,
    }
    assert weights(parsed) == {kind: weight for kind, weight in existing.items() if weight}
    if parsed.prefix is None:
        return
    assert parsed.prefix.block_tokens == config.tokens_per_entry
    assert parsed.prefix.max_tokens == (asked.max_prefix_tokens or 131_072)
    assert parsed.prefix.max_blocks >= 1
    entries = config.entries
    for tier, expected in zip(
        Tier, (entries.gpu_prefix, entries.cpu_prefix, entries.disk_prefix), strict=True
    ):
        assert parsed.prefix.entries.get(tier) == expected


YAML = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)


def places(document: object, at: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    if isinstance(document, dict):
        below = document.items()
    elif isinstance(document, list):
        below = dict(enumerate(document)).items()
    else:
        return [at]
    return [at, *(place for key, value in below for place in places(value, (*at, key)))]


@settings(max_examples=100)
@given(data=st.data())
def test_anything_anywhere_is_read_or_refused_in_one_line(data: st.DataObject) -> None:
    document = yaml.safe_load(TEXT) | {"shedding": {"queueDepth": 3}, "metrics": {}, "tokenization": {}}
    *outer, last = data.draw(st.sampled_from([place for place in places(document) if place]))
    holder = document
    for key in outer:
        holder = holder[key]
    holder[last] = data.draw(YAML)
    try:
        parse_settings(yaml.safe_dump(document))
    except PickerConfigError as error:
        assert "\n" not in str(error)  # noqa: PT017  # what is refused is not known beforehand


def test_settings_of_an_unknown_version_are_those_of_this_release() -> None:
    assert parse_settings(picker_config("builtin", replace(EXAMPLE, version="0.1")).text) == parse_settings(
        TEXT
    )
