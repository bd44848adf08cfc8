"""Orders are read strictly: a typing error must not clear too much."""

from typing import Any

import pytest

from kvtier_common.errors import MalformedError
from kvtier_common.tier import Tier
from kvtier_connector.core.control.orders import (
    MOST_PROMPTS,
    ClearOrder,
    Order,
    PrefetchOrder,
    PromptTokens,
    StatusOrder,
    read_order,
)


@pytest.mark.parametrize(
    ("fields", "order"),
    [
        ({"verb": "clear"}, ClearOrder(frozenset(Tier))),
        ({"verb": "clear", "tier": None, "share": None, "tokens": None}, ClearOrder(frozenset(Tier))),
        (
            {"verb": "clear", "tier": "disk", "share": "a", "epoch": "e"},
            ClearOrder(frozenset({Tier.DISK}), "a", (), "e"),
        ),
        (
            {"verb": "clear", "tokens": [[1], [2, 3]], "cache_salt": "s"},
            ClearOrder(frozenset(Tier), "", (PromptTokens((1,), "s"), PromptTokens((2, 3), "s"))),
        ),
        ({"verb": "prefetch", "tokens": [1, 2]}, PrefetchOrder(PromptTokens((1, 2)))),
        ({"verb": "status"}, StatusOrder()),
        ({"verb": "top"}, StatusOrder()),
    ],
)
def test_an_order_is_read(fields: dict[str, Any], order: Order) -> None:
    assert read_order(fields) == order


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({}, "verb"),
        ({"verb": "clean"}, "verb"),
        ({"verb": ["clear"]}, "verb"),
        ({"verb": "clear", "teir": "cpu"}, "teir"),
        ({"verb": "clear", "tier": "memory"}, "tier"),
        ({"verb": "clear", "tier": 1}, "tier"),
        ({"verb": "clear", "tier": ["cpu"]}, "tier"),
        ({"verb": "clear", "share": 5}, "share"),
        ({"verb": "clear", "share": "a" * 64}, "share"),
        ({"verb": "clear", "share": ""}, "share"),
        ({"verb": "clear", "share": "", "tokens": [[1]]}, "share"),
        ({"verb": "clear", "tokens": []}, "tokens"),
        ({"verb": "clear", "tokens": [1, 2]}, "tokens"),
        ({"verb": "clear", "tokens": [[]]}, "tokens"),
        ({"verb": "clear", "tokens": [[1]] * (MOST_PROMPTS + 1)}, "tokens"),
        ({"verb": "clear", "tokens": [[1]], "share": "a"}, "share"),
        ({"verb": "clear", "cache_salt": "s"}, "cache_salt"),
        ({"verb": "prefetch"}, "tokens"),
        ({"verb": "prefetch", "tokens": [-1]}, "tokens"),
        ({"verb": "prefetch", "tokens": [True]}, "tokens"),
        ({"verb": "prefetch", "tokens": [1.0]}, "tokens"),
        ({"verb": "status", "tier": "cpu"}, "tier"),
    ],
)
def test_a_bad_order_is_refused_by_the_name_of_what_is_bad(fields: dict[str, Any], named: str) -> None:
    with pytest.raises(MalformedError, match=named):
        read_order(fields)
