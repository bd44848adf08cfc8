"""The store of routes: who hides whom, and who is told when that changes."""

from typing import Any

from tests.cases.routes import condition, parent_status, route

from kvtier_operator.reconcile.api_server import BY_NAME, Ref
from kvtier_operator.reconcile.cache.live_objects import KindSink, LiveObjectCache, RouteCache


class _Told:
    def __init__(self) -> None:
        self._calls: list[str] = []
        self.routes = RouteCache(lambda *call: self._calls.append("/".join(call)))

    def upsert(self, document: dict[str, Any], *, ours: bool = True) -> None:
        self.routes.upsert(document, ours=ours)

    def news(self) -> list[str]:
        calls, self._calls = self._calls, []
        return sorted(calls)

    def by(self, name: str) -> str:
        found = self.routes.hidden_by(*name.split("/"))
        return found.by.route if found else ""


def test_who_is_hidden_is_told_when_it_happens_and_when_it_ends() -> None:
    told = _Told()
    told.upsert(route("a/one"))
    told.upsert(route("b/two"))
    assert (told.by("a/one"), told.by("b/two"), told.news()) == ("", "a/one", ["b/two"])
    told.upsert(route("b/two"))
    assert not told.news()
    told.upsert(route("b/two", hosts=["b.example.com"]))
    assert (told.by("b/two"), told.news()) == ("", ["b/two"])
    told.upsert(route("b/two"))
    told.news()
    told.routes.delete(route("a/one"))
    assert (told.by("b/two"), told.news()) == ("", ["b/two"])


def test_a_route_that_comes_late_is_no_news_for_those_before_it() -> None:
    told = _Told()
    told.upsert(route("a/one"))
    told.upsert(route("b/two"))
    told.news()
    told.upsert(route("a/three", created="2026-01-02T00:00:00Z"))
    assert told.news() == ["a/three"]
    told.upsert(route("a/early", created="2025-01-01T00:00:00Z"))
    assert told.news() == ["a/one", "a/three", "b/two"]


def test_a_route_that_its_gateway_does_not_take_hides_nothing() -> None:
    told = _Told()
    refused = condition("Accepted", "False", "NotAllowedByListeners")
    told.upsert(route("a/one", status={"parents": [parent_status(refused)]}))
    told.upsert(route("b/two"))
    assert told.by("b/two") == ""
    told.upsert(route("a/one", status={"parents": [parent_status(condition())]}))
    assert (told.by("b/two"), told.news()) == ("a/one", ["b/two"])


def test_of_a_route_of_many_paths_one_is_asked_for() -> None:
    told = _Told()
    paths = ("/v1/models", "/v1/chat/completions", "/a/b")
    matches = [{"path": {"type": "PathPrefix", "value": path}} for path in paths]
    told.upsert(route("b/two", matches=matches))
    told.upsert(route("a/one", matches=matches[1:2]), ours=False)
    assert (told.by("b/two"), told.news()) == ("a/one", ["b/two"])


def test_a_list_drops_what_is_not_in_it_of_its_namespace() -> None:
    told = _Told()
    for name in ("a/one", "b/two", "c/three"):
        told.upsert(route(name))
    told.routes.replace("b", set())
    assert (told.by("b/two"), told.by("c/three")) == ("", "a/one")
    told.routes.replace(None, {("c", "three")})
    assert told.by("c/three") == ""


def test_only_routes_with_kvtiers_label_are_children() -> None:
    live_objects, routes = LiveObjectCache(lambda *_: None), RouteCache(lambda *_: None)
    sink = KindSink(live_objects, BY_NAME["HTTPRoute"], None, routes)
    ref = Ref("HTTPRoute", "team", "qwen")
    label = {"app.kubernetes.io/managed-by": "kvtier"}
    for version, labels in enumerate((label, {}, label), start=1):
        document = route()
        document["metadata"] |= {"uid": "u", "resourceVersion": str(version), "labels": labels}
        sink.upsert(document)
        assert (live_objects.get(ref) is not None) == bool(labels)
    sink.upsert(
        route("b/two") | {"metadata": {**route("b/two")["metadata"], "uid": "v", "resourceVersion": "9"}}
    )
    assert routes.hidden_by("team", "qwen")
    sink.replace({("team", "qwen")}, 9)
    assert not routes.hidden_by("team", "qwen")
