"""Which routes are hidden, kept up to date: against all pairs compared, and what that costs."""

import tracemalloc
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.cases.routes import covers
from tests.shared.steps import steps

from kvtier_operator.planning.router.engine_routes import EVERY_PATH
from kvtier_operator.planning.router.route_order import EVERY_HOST, Claim, Listeners, RouteOrder

Answer = tuple[str, tuple[str, ...], bool]
_MOST_PARENTS, _MOST_HOSTS, _MOST_MATCHES = 32, 16, 128
"""Of an HTTPRoute (Gateway API v1, apis/v1/httproute_types.go)."""


def _by_comparing_all(claim: Claim, claims: Iterable[Claim]) -> Answer | None:
    left, found = {*claim.hosts}, list[tuple[Claim, tuple[str, ...]]]()
    for other in sorted(claims, key=lambda each: each.turn):
        hosts = tuple(host for host in claim.hosts if host in left and host in other.hosts)
        if hosts and other.turn < claim.turn and covers(other, claim) and claim.paths <= other.paths:
            found.append((other, hosts))
            left -= {*hosts}
    return (found[0][0].route, found[0][1], not left) if found else None


def _answer(order: RouteOrder, route: str) -> Answer | None:
    found = order.find_hidden(route)
    return (found.by.route, found.hosts, found.wholly) if found else None


_listeners = st.builds(
    Listeners, st.sampled_from(["g/g", "g/h"]), st.sampled_from(["", "a", "b"]), st.sampled_from([0, 80])
)
_PATHS: Final = (EVERY_PATH, "/a/one", "/b/two")
_hosts = st.lists(st.sampled_from(["a.test", "b.test", "*.test"]), unique=True)


def _parts(parents: int, paths: int) -> st.SearchStrategy[dict[str, object]]:
    return st.fixed_dictionaries(
        {
            "created": st.sampled_from(["2026-01-01T00:00:00Z", "2026-01-01T00:00:01Z"]),
            "listeners": st.frozensets(_listeners, min_size=1, max_size=parents),
            "hosts": _hosts.map(lambda hosts: tuple(hosts) or (EVERY_HOST,)),
            "paths": st.frozensets(st.sampled_from(_PATHS), min_size=1, max_size=paths),
        }
    )


_ASKING: Final = ("a/one", "a/two", "b/one", "b/two")
_changes = st.dictionaries(st.sampled_from(_ASKING), st.none() | _parts(1, 1), max_size=3)
_others = st.dictionaries(st.sampled_from(["a/x", "b/y", "c/z"]), st.none() | _parts(4, 3), max_size=3)


@given(rounds=st.lists(st.tuples(_changes, _others), max_size=12))
def test_after_any_changes_it_says_what_comparing_all_says_and_names_whose_answer_changed(
    rounds: list[tuple[dict[str, dict[str, object] | None], dict[str, dict[str, object] | None]]],
) -> None:
    order, there = RouteOrder(), dict[str, Claim]()
    for ours, others in rounds:
        before = {
            route: _by_comparing_all(there[route], there.values()) for route in _ASKING if route in there
        }
        new = {
            route: Claim(route=route, **parts) if parts else None  # type: ignore[arg-type] # of one mapping
            for route, parts in (ours | others).items()
        }
        told = order.put(new, {route for route, claim in new.items() if claim and route in _ASKING})
        there = {route: claim for route, claim in (there | new).items() if claim}
        after = {
            route: _by_comparing_all(there[route], there.values()) for route in _ASKING if route in there
        }
        assert {route: _answer(order, route) for route in after} == after
        assert {each for each in before.keys() | after if before.get(each) != after.get(each)} <= told


def test_only_those_that_ask_are_told_and_answered() -> None:
    order = RouteOrder()
    assert not order.put({"a/one": _claim("a/one"), "b/two": _claim("b/two")})
    assert order.find_hidden("b/two") is None
    assert order.put({"b/two": _claim("b/two")}, {"b/two"}) == {"b/two"}
    assert order.put({"b/two": _claim("b/two")}) == {"b/two"}
    assert order.find_hidden("b/two") is None


def test_a_route_of_several_paths_does_not_ask() -> None:
    order, both = RouteOrder(), replace(_claim("b/two"), paths=frozenset({EVERY_PATH, "/b/two"}))
    assert not order.put({"a/one": _claim("a/one"), "b/two": both}, {"b/two"})
    assert order.find_hidden("b/two") is None


def _claim(route: str, *, parents: int = 1, hosts: Iterable[str] = ("a.test",), own: str = "") -> Claim:
    sections = (str(number or own) for number in range(parents))
    return Claim("", route, frozenset(Listeners("g/g", section) for section in sections), (*hosts,))


def _wide(count: int) -> dict[str, Claim]:
    """As many parents, host names and paths as a route can have, all host names the same but one."""
    common = [f"{number}.test" for number in range(_MOST_HOSTS - 1)]
    names = (f"a/{number:06}" for number in range(count))
    paths = frozenset([EVERY_PATH, *(f"/a/{number}" for number in range(_MOST_MATCHES - 1))])
    return {
        name: replace(_claim(name, parents=_MOST_PARENTS, hosts=(*common, f"{name[2:]}.test")), paths=paths)
        for name in names
    }


def _own(count: int) -> dict[str, Claim]:
    """Of the same hosts, and hidden by those."""
    hosts = [f"{number}.test" for number in range(_MOST_HOSTS)]
    return {name: _claim(name, hosts=hosts) for name in (f"b/{number:06}" for number in range(count))}


def _one_by_one(claims: Mapping[str, Claim], asking: bool) -> RouteOrder:
    order = RouteOrder()
    for route, claim in claims.items():
        order.put({route: claim}, {route} if asking else frozenset())
    return order


@pytest.mark.parametrize("asking", [False, True])
def test_routes_as_wide_as_can_be_cost_no_more_each_the_more_there_are(asking: bool) -> None:
    def cost(count: int) -> float:
        claims = {**_wide(count), **_own(1)}
        return steps(lambda: _one_by_one(claims, asking)) / count

    assert cost(200) < 1.5 * cost(50)


def test_one_route_costs_no_more_however_many_there_are() -> None:
    def cost(count: int) -> int:
        order = _one_by_one(_own(2), asking=True)
        claims = _wide(count)
        order.put(claims)
        first, *_, last = claims
        back = {route: claims[route] for route in (first, last)}
        return steps(lambda: (order.put(dict.fromkeys(back)), order.put(back)))

    assert cost(1000) < 1.5 * cost(10)


def test_an_answer_costs_no_more_however_many_there_are() -> None:
    def cost(count: int) -> int:
        order = RouteOrder()
        order.put(_wide(count))
        order.put(_own(count), {*_own(count)})
        return steps(lambda: order.find_hidden("b/000001"))

    assert cost(1000) < 1.5 * cost(10)


def test_what_is_kept_of_a_route_is_not_all_pairs_of_its_parents_and_hosts() -> None:
    claims, order = _wide(100), RouteOrder()
    tracemalloc.start()
    order.put(claims)
    kept_bytes, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert kept_bytes / len(claims) < 16 * _MOST_PARENTS * _MOST_HOSTS
