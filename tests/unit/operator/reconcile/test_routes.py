"""The store of routes: who hides whom, and who is told when that changes."""

from collections.abc import Iterator
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from tests.cases.routes import condition, parent_status, route

from kvtier_operator.planning.route_claims import claim_of, hidden
from kvtier_operator.reconcile.children import Children, KindSink
from kvtier_operator.reconcile.kinds import BY_NAME, Ref
from kvtier_operator.reconcile.routes import Routes, RouteSink


class _Told:
    def __init__(self) -> None:
        self._calls: list[str] = []
        self.routes = Routes(lambda *call: self._calls.append("/".join(call)))

    def news(self) -> list[str]:
        calls, self._calls = self._calls, []
        return sorted(calls)

    def by(self, name: str) -> str:
        found = self.routes.hidden_by(*name.split("/"))
        return found.by.route if found else ""


def test_who_is_hidden_is_told_when_it_happens_and_when_it_ends() -> None:
    told = _Told()
    told.routes.seen(route("a/one"))
    told.routes.seen(route("b/two"))
    assert (told.by("a/one"), told.by("b/two"), told.news()) == ("", "a/one", ["b/two"])
    told.routes.seen(route("b/two"))
    assert not told.news()
    told.routes.seen(route("b/two", hosts=["b.example.com"]))
    assert (told.by("b/two"), told.news()) == ("", ["b/two"])
    told.routes.seen(route("b/two"))
    told.news()
    told.routes.gone(route("a/one"))
    assert (told.by("b/two"), told.news()) == ("", ["b/two"])


def test_a_route_that_comes_late_is_no_news_for_those_before_it() -> None:
    told = _Told()
    told.routes.seen(route("a/one"))
    told.routes.seen(route("b/two"))
    told.news()
    told.routes.seen(route("a/three", created="2026-01-02T00:00:00Z"))
    assert told.news() == ["a/three"]
    told.routes.seen(route("a/early", created="2025-01-01T00:00:00Z"))
    assert told.news() == ["a/one", "a/three", "b/two"]


def test_a_route_that_its_gateway_does_not_take_hides_nothing() -> None:
    told = _Told()
    refused = condition("Accepted", "False", "NotAllowedByListeners")
    told.routes.seen(route("a/one", status={"parents": [parent_status(refused)]}))
    told.routes.seen(route("b/two"))
    assert told.by("b/two") == ""
    told.routes.seen(route("a/one", status={"parents": [parent_status(condition())]}))
    assert (told.by("b/two"), told.news()) == ("a/one", ["b/two"])


def test_a_list_drops_what_is_not_in_it_of_its_namespace() -> None:
    told = _Told()
    for name in ("a/one", "b/two", "c/three"):
        told.routes.seen(route(name))
    told.routes.only("b", set())
    assert (told.by("b/two"), told.by("c/three")) == ("", "a/one")
    told.routes.only(None, {("c", "three")})
    assert told.by("c/three") == ""


_changes = st.lists(
    st.tuples(
        st.sampled_from(["a/one", "a/two", "b/one", "b/two"]),
        st.none()
        | st.fixed_dictionaries(
            {
                "created": st.sampled_from(["2026-01-01T00:00:00Z", "2026-01-01T00:00:01Z"]),
                "section": st.sampled_from(["", "http", "https"]),
                "hosts": st.lists(st.sampled_from(["a.test", "b.test"]), unique=True),
            }
        ),
    ),
    max_size=20,
)


def _standing(there: dict[str, dict[str, Any]]) -> Iterator[tuple[str, str]]:
    claims = sorted(filter(None, map(claim_of, there.values())), key=lambda each: each.turn)
    for claim in claims:
        found = hidden(claim, claims)
        yield claim.route, found.by.route if found else ""


@given(changes=_changes)
def test_after_any_changes_it_says_what_all_routes_together_say_and_told_of_each(
    changes: list[tuple[str, dict[str, Any] | None]],
) -> None:
    told, there = _Told(), dict[str, dict[str, Any]]()
    for name, fields in changes:
        before = dict(_standing(there))
        if fields is None:
            there.pop(name, None)
            told.routes.gone(route(name))
        else:
            there[name] = route(name, **fields)
            told.routes.seen(there[name])
        after = dict(_standing(there))
        assert {each: told.by(each) for each in after} == after
        moved = {each for each in before.keys() | after.keys() if before.get(each, "") != after.get(each, "")}
        assert moved <= set(told.news())


def test_only_routes_with_kvtiers_label_are_children() -> None:
    children, routes = Children(lambda *_: None), Routes(lambda *_: None)
    sink = RouteSink(KindSink(children, BY_NAME["HTTPRoute"], None), routes)
    ref = Ref("HTTPRoute", "team", "qwen")
    for version, labels in enumerate(({}, {"app.kubernetes.io/managed-by": "kvtier"}, {}), start=1):
        document = route()
        document["metadata"] |= {"uid": "u", "resourceVersion": str(version), "labels": labels}
        sink.seen(document)
        assert (children.get(ref) is not None) == bool(labels)
    sink.seen(
        route("b/two") | {"metadata": {**route("b/two")["metadata"], "uid": "v", "resourceVersion": "9"}}
    )
    assert routes.hidden_by("team", "qwen")
    sink.only({("team", "qwen")}, 9)
    assert not routes.hidden_by("team", "qwen")
