"""Which route is served: against the rule as Gateway API words it, one request at a time."""

from collections.abc import Iterator
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.cases.routes import covers, find_hidden, route

from kvtier_operator.planning.router.engine_routes import CHAT
from kvtier_operator.planning.router.route_order import EVERY_HOST, Claim, Listeners, claim_of, listeners_of

_SECTIONS: Final = ("http", "https")
_OWN: Final = [{"path": {"type": "PathPrefix", "value": "/team/qwen"}}]
_HOSTS: Final = ("a.example.com", "b.example.com", "*.example.com", "*.com", "example.com")


def _below(*paths: str) -> list[dict[str, Any]]:
    return [{"path": {"type": "PathPrefix", "value": path}} for path in paths]


def _claim(name: str = "team/qwen", **more: Any) -> Claim:  # noqa: ANN401 - the route's fields
    claim = claim_of(route(name, **more))
    assert claim
    return claim


def _by(claim: Claim, *others: Claim) -> str:
    found = find_hidden(claim, others)
    return found.by.route if found else ""


@pytest.mark.parametrize(
    ("older", "younger", "is_hidden"),
    [
        ({}, {}, True),
        ({"gateway": "infra/other"}, {}, False),
        ({"gateway": "team/front"}, {}, False),
        ({"section": "http"}, {"section": "http"}, True),
        ({"section": "http"}, {"section": "https"}, False),
        # such as a route from http to https: what comes by another listener is the younger one's
        ({"section": "http"}, {}, False),
        ({}, {"section": "http"}, True),
        ({"hosts": ["a.example.com"]}, {"hosts": ["a.example.com", "b.example.com"]}, True),
        ({"hosts": ["*.example.com"]}, {"hosts": ["*.example.com"]}, True),
        ({"hosts": ["a.example.com"]}, {"hosts": ["b.example.com"]}, False),
        # the more specific name goes first, so each has requests of its own
        ({"hosts": ["*.example.com"]}, {"hosts": ["a.example.com"]}, False),
        ({"hosts": ["a.example.com"]}, {"hosts": ["*.example.com"]}, False),
        ({}, {"hosts": ["a.example.com"]}, False),
        ({"hosts": ["a.example.com"]}, {}, False),
        ({"matches": [{"path": {"type": "PathPrefix", "value": "/v1"}}]}, {}, False),
        ({"matches": [{"path": {"type": "Exact", "value": "/"}}]}, {}, False),
        ({"matches": [{"headers": [{"name": "x-model", "value": "a"}]}]}, {}, False),
        ({"matches": [{"method": "POST"}]}, {}, False),
        ({"matches": [{"method": "POST"}, {}]}, {}, True),
        ({"matches": _OWN}, {"matches": _OWN}, True),
        ({"matches": [{"path": {"type": "PathPrefix", "value": "/team/qwen/"}}]}, {"matches": _OWN}, True),
        ({"matches": [*_OWN, {}]}, {"matches": _OWN}, True),
        ({"matches": [*_OWN, {}]}, {}, True),
        # the longer path goes first, so each has requests of its own
        ({}, {"matches": _OWN}, False),
        ({"matches": _OWN}, {}, False),
        ({"matches": [{"path": {"type": "PathPrefix", "value": "/team/llama"}}]}, {"matches": _OWN}, False),
        ({"matches": [_OWN[0] | {"method": "POST"}]}, {"matches": _OWN}, False),
        ({"matches": [{"path": {"type": "Exact", "value": "/team/qwen"}}]}, {"matches": _OWN}, False),
        ({"matches": []}, {}, True),
    ],
)
def test_the_older_route_hides_the_younger_one_of_the_same_requests(
    older: dict[str, Any], younger: dict[str, Any], is_hidden: bool
) -> None:
    first = claim_of(route("team/zzz", created="2026-01-01T00:00:00Z", **older))
    second = _claim("team/aaa", created="2026-01-02T00:00:00Z", **younger)
    assert _by(second, *filter(None, [first])) == ("team/zzz" if is_hidden else "")
    if first:
        assert not _by(first, second)


def test_of_the_same_age_the_first_by_name_goes_first() -> None:
    one, two = _claim("a/z"), _claim("b/a")
    assert (_by(one, two), _by(two, one)) == ("", "a/z")


def test_which_requests_are_lost_and_where() -> None:
    first = _claim("a/first", hosts=["a.example.com", "c.example.com"])
    found = find_hidden(_claim(hosts=["a.example.com", "b.example.com"]), [first])
    assert found
    assert (found.gateway, found.requests) == ("infra/front", "all requests for a.example.com")
    assert not found.wholly
    second = _claim("b/second", hosts=["b.example.com"])
    both = find_hidden(_claim(hosts=["a.example.com", "b.example.com"]), [first, second])
    assert both
    assert (both.by, both.wholly) == (first, True)
    everything = find_hidden(_claim(), [_claim("a/first")])
    assert everything
    assert (everything.requests, everything.wholly) == ("all requests for every host", True)


def test_the_path_of_requests_that_are_lost_is_told() -> None:
    found = find_hidden(_claim(matches=_OWN), [_claim("a/first", matches=_OWN)])
    assert found
    assert (found.requests, found.wholly) == ("all requests below /team/qwen for every host", True)


def test_paths_that_no_route_of_ours_has_are_not_kept() -> None:
    kept = {"/", "/a/b", CHAT, f"/a/b{CHAT}"}
    values = [*kept, "/a/b/c", "/a", f"/a/{'b' * 64}", f"/a{CHAT}", f"{CHAT}/batch"]
    assert _claim(matches=_below(*values)).paths == kept


@pytest.mark.parametrize(
    ("paths", "asked"),
    [
        (["/v1/models", CHAT, "/a/b"], CHAT),
        (["/v1/models", CHAT, f"/a/b{CHAT}"], CHAT),
        (["/team/qwen/v1/models", f"/team/qwen{CHAT}"], f"/team/qwen{CHAT}"),
        (["/team/qwen"], "/team/qwen"),
        (["/"], "/"),
    ],
)
def test_one_path_stands_for_all_of_a_route_of_ours(paths: list[str], asked: str) -> None:
    claim = claim_of(route(matches=_below(*paths)), ours=True)
    assert claim
    assert claim.path == asked


def test_listeners_that_do_not_take_a_route_are_none_of_its() -> None:
    document = route(section="http")
    assert claim_of(document)
    assert claim_of(document, {Listeners("infra/front", "http")}) is None


def test_only_gateways_count_and_their_namespace_is_the_routes_own_by_default() -> None:
    assert listeners_of({"name": "front"}, "team") == Listeners("team/front")
    assert listeners_of({"name": "front", "sectionName": "a", "port": 80}, "t") == Listeners(
        "t/front", "a", 80
    )
    assert listeners_of({"name": "x", "kind": "Service", "group": ""}, "team") is None
    assert listeners_of({"name": "default", "kind": "Status"}, "team") is None
    assert listeners_of({}, "team") is None


def test_ports_part_listeners_too() -> None:
    at_80, at_81, anywhere = (Listeners("g/g", port=port) for port in (80, 81, 0))
    assert anywhere in at_80.covering
    assert at_80 not in anywhere.covering
    assert at_80 not in at_81.covering


def _matches(pattern: str, host: str) -> bool:
    if pattern == EVERY_HOST:
        return True
    if pattern.startswith("*."):
        return host.endswith(pattern[1:]) and host != pattern[1:]
    return pattern == host


def _served(claims: list[Claim], section: str, host: str) -> Claim | None:
    """The route that takes a request, as the specification words it."""

    def rank(each: Claim) -> tuple[int, int, str, str]:
        fitting = [pattern for pattern in each.hosts if _matches(pattern, host)]
        exact = max((len(pattern) for pattern in fitting if "*" not in pattern), default=0)
        longest = max(len(pattern) if pattern != EVERY_HOST else 0 for pattern in fitting)
        return -exact, -longest, each.created, each.route

    there = [
        claim
        for claim in claims
        if any(listener.section in ("", section) for listener in claim.listeners)
        and any(_matches(pattern, host) for pattern in claim.hosts)
    ]
    return min(there, key=rank, default=None)


def _only_of(pattern: str) -> str:
    """A host that no pattern matches which is more specific than this one."""
    return "other.test" if pattern == EVERY_HOST else pattern.replace("*", "nobody-elses")


def _requests(claim: Claim) -> Iterator[tuple[str, str]]:
    for section in _SECTIONS:
        if any(listener.section in ("", section) for listener in claim.listeners):
            yield from ((section, _only_of(pattern)) for pattern in claim.hosts)


_claims = st.lists(
    st.builds(
        Claim,
        created=st.sampled_from(["2026-01-01T00:00:00Z", "2026-01-01T00:00:01Z"]),
        route=st.sampled_from([f"team/{letter}" for letter in "abcdef"]),
        listeners=st.sampled_from(["", *_SECTIONS]).map(
            lambda section: frozenset([Listeners("g/g", section)])
        ),
        hosts=st.lists(st.sampled_from(_HOSTS), unique=True, max_size=3).map(
            lambda hosts: tuple(hosts) or (EVERY_HOST,)
        ),
    ),
    unique_by=lambda each: each.route,
    max_size=6,
)


@given(claims=_claims)
def test_a_route_is_hidden_exactly_if_requests_that_are_its_own_go_elsewhere(claims: list[Claim]) -> None:
    for claim in claims:
        found = find_hidden(claim, claims)
        alone = [claim, *(each for each in claims if covers(each, claim))]
        served = {_served(alone, *request) for request in _requests(claim)}
        assert (found is not None) == (served != {claim})
        assert found is None or found.by in served
        assert found is None or found.wholly == (claim not in served)
