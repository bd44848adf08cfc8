from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest
from click.testing import CliRunner
from tests.cases.seen import resource, view_of, well

from kvtier_operator.cli.cluster.resource import ResourceView, Seen
from kvtier_operator.cli.cluster.screen import listing, overview
from kvtier_operator.cli.cluster.status import status

AT_80 = """\
name                 ready  cpu hit  disk hit  cpu filled  cpu saved  disk saved
llm/qwen3-32b          2/2    20.0%      5.0%       50.0%       72 s        18 s
team/a-model-with-…    2/2        -         -           -          -           -
not read: pods: you may not list them in namespace team
"""
AT_120 = """\
name                        ready  gpu hit  cpu hit  disk hit  cpu filled  disk filled  gpu saved  cpu saved  disk saved
llm/qwen3-32b                 2/2    40.0%    20.0%      5.0%       50.0%        10.0%      160 s       72 s        18 s
team/a-model-with-a-rathe…    2/2        -        -         -           -            -          -          -           -
not read: pods: you may not list them in namespace team
"""  # noqa: E501 - 120 columns


LISTED_AT_60 = """\
name                        ready  reason  engines  hit rate
llm/qwen3-32b               True   Ready       2/2     65.0%
team/a-model-with-a-rathe…  True   Ready       2/2         -
not read: pods: you may not list them in namespace team
"""
LISTED_AT_120 = """\
name                                                model           ready  reason  engines  hit rate
llm/qwen3-32b                                       Qwen/Qwen3-32B  True   Ready       2/2     65.0%
team/a-model-with-a-rather-long-name-that-is-quiet  Qwen/Qwen3-32B  True   Ready       2/2         -
not read: pods: you may not list them in namespace team
"""


def views() -> list[ResourceView]:
    """One that serves, and one of which nothing is read."""
    quiet = resource({"tiers": {"cpu": {"bytes": 7, "tokens": 3}}})
    quiet["metadata"] = {"name": "a-model-with-a-rather-long-name-that-is-quiet", "namespace": "team"}
    return [view_of(well()), view_of(Seen(quiet, unread=("pods: you may not list them in namespace team",)))]


@pytest.mark.parametrize(("columns", "text"), [(80, AT_80), (120, AT_120)])
def test_a_line_a_resource(columns: int, text: str) -> None:
    assert overview(views(), columns) == text


@pytest.mark.parametrize(("columns", "text"), [(60, LISTED_AT_60), (120, LISTED_AT_120)])
def test_whether_each_serves(columns: int, text: str) -> None:
    assert listing(views(), columns) == text


@pytest.mark.parametrize("columns", [40, 80, 120, 160])
@pytest.mark.parametrize("screen", [overview, listing])
def test_nothing_is_wider_than_the_terminal(
    columns: int, screen: Callable[[Sequence[ResourceView], int], str]
) -> None:
    assert max(map(len, screen(views(), columns).splitlines())) <= columns


def test_columns_of_a_tier_that_nobody_has_are_left_out() -> None:
    one = view_of(well())
    without = replace(one, tiers=tuple(tier for tier in one.tiers if tier.tier.label != "disk"))
    assert "disk" not in overview([without], 120)


def test_none() -> None:
    assert overview([], 80) == listing([], 80) == "no KVCacheTiers\n"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["qwen", "-A"], "a NAME is of one namespace: "),
        (["--watch", "-o", "json"], "--watch is for a reader: "),
    ],
)
def test_what_status_is_not_asked_together(words: list[str], said: str) -> None:
    result = CliRunner().invoke(status, words)
    assert (result.exit_code, said in result.stderr) == (2, True)
