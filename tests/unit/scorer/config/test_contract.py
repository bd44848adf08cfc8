"""How large bodies may be, and what they take at worst."""

import pytest
from tests.unit.scorer.config.settings.example import TEXT

from kvtier_scorer.config.contract import body_limits
from kvtier_scorer.config.parse import parse_settings

MIB = 1 << 20


@pytest.mark.parametrize(
    ("tokens", "asked", "each", "total"),
    [
        (None, None, 8, 64),
        (131_072, None, 8, 64),
        (1 << 20, None, 16, 64),
        (10 << 20, None, 32, 128),
        (10 << 20, 1 * MIB, 1, 64),
        (None, 256 * MIB, 256, 1024),
    ],
)
def test_bodies_follow_the_model_between_bounds(
    tokens: int | None, asked: int | None, each: int, total: int
) -> None:
    found = body_limits(tokens, asked)
    assert (found.max_bytes, found.total_bytes) == (each * MIB, total * MIB)


def test_the_picker_has_the_same_defaults() -> None:
    found, defaults = body_limits(None, None), parse_settings(TEXT).limits
    assert (found.max_bytes, found.total_bytes) == (defaults.max_body_bytes, defaults.total_body_bytes)
