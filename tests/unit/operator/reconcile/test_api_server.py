"""The table of kinds holds everything that the planner can build, in an order that can be applied."""

from pathlib import Path

import pytest
import yaml

from kvtier_operator.reconcile.api_server import AUTOSCALERS, BY_NAME, KINDS

_GOLDEN = Path(__file__).parents[1] / "golden" / "output"


@pytest.mark.parametrize("path", sorted(_GOLDEN.glob("*/objects.yaml")), ids=lambda path: path.parent.name)
def test_every_kind_that_is_built_is_known(path: Path) -> None:
    for document in yaml.load_all(path.read_text(), yaml.CSafeLoader):
        kind = BY_NAME[document["kind"]]
        assert kind.api_version == document["apiVersion"]


def test_names_are_unique() -> None:
    assert len(BY_NAME) == len(KINDS)


def test_what_a_pod_refers_to_comes_before_it_and_the_route_last() -> None:
    wave = {kind.kind: kind.wave for kind in KINDS}
    assert all(
        wave[kind] < wave["Deployment"] for kind in ("ConfigMap", "ServiceAccount", "Role", "RoleBinding")
    )
    assert wave["Role"] < wave["RoleBinding"]
    assert wave["Deployment"] < wave["InferencePool"] < wave["HTTPRoute"]


def test_who_scales_a_workload_finds_it_there() -> None:
    wave = {kind.kind: kind.wave for kind in KINDS}
    assert all(wave["Deployment"] < wave[kind] for kind in AUTOSCALERS)


def test_a_name_is_one_part_of_a_path_whatever_stands_in_it() -> None:
    path = BY_NAME["Role"].path("team", "a?dryRun=All#/../b%2e")
    assert (
        path == "/apis/rbac.authorization.k8s.io/v1/namespaces/team/roles/a%3FdryRun%3DAll%23%2F..%2Fb%252e"
    )
