"""Saying the same in the server's words."""

import pytest

from kvtier_operator.reconcile.matching import says

_SAME = [
    ({"a": 1, "b": 2}, {"a": 1}),
    ({"memory": "1Gi"}, {"memory": "1024Mi"}),
    ({"cpu": "500m"}, {"cpu": "0.5"}),
    ({}, {"env": []}),
    ({"x": None}, {"x": {}}),
    ([{"name": "a", "image": "x", "pullPolicy": "Always"}], [{"name": "a", "image": "x"}]),
    ([{"name": "b"}, {"name": "a"}, {"name": "c"}], [{"name": "a"}, {"name": "b"}]),
    (0, 0),
    ({}, {"paused": False, "minReadySeconds": 0}),
]
_DIFFERENT = [
    ({"a": 1}, {"a": 2}),
    ({}, {"a": False}),
    ({"a": True}, {"a": 1}),
    ({}, {"replicas": 0}),
    ({"paused": True}, {"paused": False}),
    ({"minReadySeconds": 1}, {"minReadySeconds": 0}),
    ([{"name": "a"}], [{"name": "a"}, {"name": "b"}]),
    (["x", "y"], ["y", "x"]),
    (["x", "y", "z"], ["x", "y"]),
    ({"memory": "1Gi"}, {"memory": "1G"}),
    ("a", ["a"]),
    ({"a": {"b": 1}}, {"a": "b"}),
]


@pytest.mark.parametrize(("live", "wanted"), _SAME)
def test_the_same(live: object, wanted: object) -> None:
    assert says(live, wanted)


@pytest.mark.parametrize(("live", "wanted"), _DIFFERENT)
def test_different(live: object, wanted: object) -> None:
    assert not says(live, wanted)
