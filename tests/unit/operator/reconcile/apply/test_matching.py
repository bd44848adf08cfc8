"""Saying the same in the server's words."""

import pytest

from kvtier_operator.reconcile.apply.diff import matches

_SAME = [
    ({"a": 1, "b": 2}, {"a": 1}),
    ({"memory": "1Gi"}, {"memory": "1024Mi"}),
    ({"cpu": "500m"}, {"cpu": "0.5"}),
    ({}, {"env": []}),
    ({"x": None}, {"x": {}}),
    ([{"name": "a", "image": "x", "pullPolicy": "Always"}], [{"name": "a", "image": "x"}]),
    (
        {"containers": [{"name": "b"}, {"name": "a"}, {"name": "c"}]},
        {"containers": [{"name": "a"}, {"name": "b"}]},
    ),
    ({"ports": [{"port": 1}, {"port": 2}]}, {"ports": [{"port": 2}]}),
    ({"resourceClaims": [{"name": "b"}, {"name": "a"}]}, {"resourceClaims": [{"name": "a"}]}),
    ({"claims": [{"name": "b"}, {"name": "a", "request": "x"}]}, {"claims": [{"name": "a"}]}),
    ({"ownerReferences": [{"uid": "b", "name": "x"}, {"uid": "a", "name": "x"}]},) * 2,
    (0, 0),
    ({}, {"paused": False, "minReadySeconds": 0}),
    ({}, {"readOnly": False, "initialDelaySeconds": 0}),
]
_DIFFERENT = [
    ({"a": 1}, {"a": 2}),
    ({}, {"a": False}),
    ({"a": True}, {"a": 1}),
    ({}, {"replicas": 0}),
    ({"paused": True}, {"paused": False}),
    ({"minReadySeconds": 1}, {"minReadySeconds": 0}),
    ({"readOnly": True}, {"readOnly": False}),
    ([{"name": "a"}], [{"name": "a"}, {"name": "b"}]),
    (["x", "y"], ["y", "x"]),
    (["x", "y", "z"], ["x", "y"]),
    ({"memory": "1Gi"}, {"memory": "1G"}),
    ({"selector": {"a": "b", "c": "d"}}, {"selector": {"a": "b"}}),
    (
        {"labelSelector": {"matchLabels": {"a": "b", "c": "d"}}},
        {"labelSelector": {"matchLabels": {"a": "b"}}},
    ),
    ({"subjects": [{"name": "a"}, {"name": "b"}]}, {"subjects": [{"name": "a"}]}),
    ({"parentRefs": [{"name": "a"}, {"name": "b"}]}, {"parentRefs": [{"name": "a"}]}),
    ("a", ["a"]),
    ({"a": {"b": 1}}, {"a": "b"}),
]


@pytest.mark.parametrize(("live", "wanted"), _SAME)
def test_the_same(live: object, wanted: object) -> None:
    assert matches(live, wanted)


@pytest.mark.parametrize(("live", "wanted"), _DIFFERENT)
def test_different(live: object, wanted: object) -> None:
    assert not matches(live, wanted)
