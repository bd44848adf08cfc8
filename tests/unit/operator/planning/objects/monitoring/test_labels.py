"""Labels by which a Prometheus selects a resource's objects, and how often it scrapes."""

import pytest
from tests.cases.monitoring import ALL, monitoring
from tests.cases.planning import resource

from kvtier_operator.errors import InvalidInputError
from kvtier_operator.planning.objects.monitoring.labels import monitoring_notes


def test_every_object_has_them_beside_kvtier_s_own() -> None:
    objects = monitoring({**ALL, "labels": {"release": "stack"}, "intervalSeconds": 30})
    for built in objects.values():
        labels = built["metadata"]["labels"]
        assert labels["release"] == "stack"
        assert labels["app.kubernetes.io/managed-by"] == "kvtier"
    monitor = objects["ServiceMonitor", "case-engine"]
    assert [endpoint["interval"] for endpoint in monitor["spec"]["endpoints"]] == ["30s"]
    assert "release" not in monitor["spec"]["selector"]["matchLabels"]


@pytest.mark.parametrize("name", ["app.kubernetes.io/managed-by", "kvtier.dev/x", "w!"])
def test_a_label_that_kvtier_sets_and_what_is_none_are_refused(name: str) -> None:
    with pytest.raises(InvalidInputError) as refused:
        monitoring({**ALL, "labels": {name: "x"}})
    assert [problem.field for problem in refused.value.problems] == ["spec.observability.labels"]


@pytest.mark.parametrize(
    ("observability", "idle"),
    [
        ({"labels": {"release": "stack"}, "intervalSeconds": 30}, ["labels", "intervalSeconds"]),
        ({"labels": {"release": "stack"}, "intervalSeconds": 30, "dashboard": True}, ["intervalSeconds"]),
        ({"labels": {"release": "stack"}, "intervalSeconds": 30, "serviceMonitor": True}, []),
        ({"intervalSeconds": 15}, []),
    ],
)
def test_settings_of_objects_that_nobody_asked_for_are_told(
    observability: dict[str, object], idle: list[str]
) -> None:
    notes = monitoring_notes(resource(observability=observability).spec)
    assert [note.split()[0] for note in notes] == [f"spec.observability.{name}" for name in idle]
