"""Which paths pass a gateway; that the table has all of vLLM's is shown in tests/engine/planning."""

import pytest

from kvtier_operator.planning.router.engine_routes import CHAT, ENGINE_ROUTES, is_below, passed_paths


def test_nothing_that_is_kept_back_is_below_a_path_that_passes() -> None:
    below = {
        route.path: path
        for route in ENGINE_ROUTES
        for path in passed_paths()
        if not route.use.passes and is_below(route.path, path)
    }
    assert below == {}


def test_each_path_is_there_once() -> None:
    paths = [route.path for route in ENGINE_ROUTES]
    assert len(paths) == len({*paths})


@pytest.mark.parametrize(
    ("extra", "more"),
    [
        ([], []),
        (["/metrics", "/load"], ["/metrics", "/load"]),
        (["/v1/chat/completions/new", "/v1/models"], []),
        (["/metrics/a", "/metrics", "/metricsX"], ["/metrics", "/metricsX"]),
    ],
)
def test_what_is_asked_for_passes_too_and_nothing_twice(extra: list[str], more: list[str]) -> None:
    assert [path for path in passed_paths(extra) if path not in passed_paths()] == more
    assert {*passed_paths()} <= {*passed_paths(extra)}
    assert CHAT in passed_paths()


def test_all_paths_where_that_is_asked_for() -> None:
    assert passed_paths(["/metrics", "/"]) == ("/",)
