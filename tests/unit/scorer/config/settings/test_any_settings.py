"""Whatever is rendered, or stands anywhere in a document, is read or refused in one line."""

from dataclasses import replace

import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.scorer.config.any_input import INPUTS
from tests.unit.scorer.config.settings.example import EXAMPLE, TEXT, weights

from kvtier_scorer.config.flavors import picker_config
from kvtier_scorer.config.model import PLUGINS, PREFIX_SCORERS, NoScorerError, PickerConfigError, PickerInput
from kvtier_scorer.config.parse import parse_settings


@given(asked=INPUTS)
def test_whatever_is_rendered_is_read_as_it_was_meant(asked: PickerInput) -> None:
    try:
        config = picker_config("builtin", asked)
    except NoScorerError:
        return
    parsed = parse_settings(config.text)
    existing = {*PLUGINS, *(PREFIX_SCORERS[tier] for tier in asked.tokens)}
    assert weights(parsed) == {
        name: weight for name, weight in asked.weights.items() if weight and name in existing
    }
    if parsed.prefix is None:
        return
    assert parsed.prefix.block_tokens == config.tokens_per_entry
    assert parsed.prefix.max_tokens == (asked.max_prefix_tokens or 131_072)
    assert parsed.prefix.max_blocks >= 1
    assert parsed.prefix.entries == config.entries


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


@settings(max_examples=50)
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
