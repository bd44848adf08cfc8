"""How the connector comes into an engine's pod whose image has nothing of kvtier."""

from typing import Any

import pytest
from tests.cases.checks import REJECT, says, verdict
from tests.cases.planning import resource
from tests.unit.operator.planning.objects.built import engine_container, pod

from kvtier_operator.planning.checks.environment import reserved_environment
from kvtier_operator.planning.cluster.pod_needs import pod_requests

PLACE = "/var/lib/kvtier/connector"
FROM_A_FIELD = {"valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}


def environment(*own: dict[str, Any], backend: str = "KVTier") -> list[tuple[str, str | None]]:
    """Variables of Python's and numba's that the engine has, each with its value."""
    container = engine_container({"spec.backend": backend, "spec.engine.env": [*own]})
    names = ("PYTHONPATH", "NUMBA_CACHE_DIR", "VLLM_PLUGINS")
    return [(each["name"], each.get("value")) for each in container["env"] if each["name"] in names]


@pytest.mark.parametrize("image", [None, "registry.example/team/vllm@sha256:" + "0" * 64])
def test_it_is_copied_before_anything_starts_beside_any_image(image: str | None) -> None:
    built = pod({"spec.engine.image": image} if image else {})
    payload, doctor = built["initContainers"]
    [engine] = built["containers"]
    assert (payload["name"], doctor["name"]) == ("kvtier-payload", "doctor")
    assert payload["image"].startswith("registry.invalid/kvtier/connector:")
    assert engine["image"] == (image or "vllm/vllm-openai:v0.32.0")
    mount = {"name": "kvtier-payload", "mountPath": PLACE}
    assert mount in engine["volumeMounts"]
    assert payload["volumeMounts"] == [mount]
    assert {"name": "kvtier-payload", "emptyDir": {}} in built["volumes"]


def test_it_costs_the_pod_nothing_and_changes_no_quality_of_service() -> None:
    changes = {
        "spec.engine.resources": {"requests": {"cpu": 4}, "limits": {"cpu": 4}},
        "spec.tiers.cpu.hugepages": {"policy": "Require"},
    }
    built = pod(changes)
    payload, doctor = built["initContainers"]
    [engine] = built["containers"]
    for kind in ("requests", "limits"):
        bounds = {name: engine["resources"][kind][name] for name in ("cpu", "memory")}
        assert payload["resources"][kind] == bounds
    assert pod_requests(built) == pod_requests(built | {"initContainers": [doctor]})


@pytest.mark.parametrize("backend", ["Native", "LMCache", "LMCacheMP"])
def test_backends_that_images_have_bring_none(backend: str) -> None:
    assert "kvtier-payload" not in str(pod({"spec.backend": backend}))
    assert environment({"name": "PYTHONPATH", **FROM_A_FIELD}, backend=backend) == [("PYTHONPATH", None)]


@pytest.mark.parametrize(("own", "path"), [("/opt/more", f"{PLACE}:/opt/more"), ("", PLACE)])
def test_it_comes_in_front_of_a_path_of_the_resource_s(own: str, path: str) -> None:
    variable = {"name": "PYTHONPATH", "value": own}
    assert dict(environment(variable))["PYTHONPATH"] == path


@pytest.mark.parametrize(("own", "plugins"), [("team,other", "team,other,kvtier"), ("kvtier", "kvtier")])
def test_its_plug_in_is_loaded_beside_those_that_are_named(own: str, plugins: str) -> None:
    assert dict(environment({"name": "VLLM_PLUGINS", "value": own}))["VLLM_PLUGINS"] == plugins


def test_a_cache_of_numba_s_elsewhere_stays_and_no_name_is_there_twice() -> None:
    assert dict(environment()) == {"PYTHONPATH": PLACE, "NUMBA_CACHE_DIR": f"{PLACE}/numba-cache"}
    assert ("NUMBA_CACHE_DIR", "/a") in environment({"name": "NUMBA_CACHE_DIR", "value": "/a"})
    told = environment({"name": "NUMBA_CACHE_DIR", **FROM_A_FIELD})
    assert sorted(told, key=str) == [("NUMBA_CACHE_DIR", None), ("PYTHONPATH", PLACE)]


@pytest.mark.parametrize(
    ("name", "why"), [("PYTHONPATH", "in front of it"), ("VLLM_PLUGINS", "plug-in behind it")]
)
def test_what_has_to_be_added_to_and_is_not_known_is_refused(name: str, why: str) -> None:
    one = resource(engine={"env": [{"name": name, **FROM_A_FIELD}]})
    result = verdict(reserved_environment, one)
    says(result, REJECT, "ReservedVariable", why, f"set {name} by value")
    assert result.field == f"spec.engine.env[{name}]"
