"""Checks of what the cluster's owner lets resources ask for."""

from dataclasses import replace
from typing import Any

import pytest
from tests.cases.checks import PASS, REJECT, says, verdict
from tests.cases.planning import resource

from kvtier_operator.planning.base.owner_policy import OwnerPolicy
from kvtier_operator.planning.checks.check import Check
from kvtier_operator.planning.checks.policy import (
    allowed_gateways,
    allowed_host_names,
    allowed_host_path,
    allowed_images,
    allowed_ipc_lock,
    allowed_root,
    allowed_templates,
)
from kvtier_operator.planning.observed import Observed
from kvtier_operator.planning.verdict import CheckResult

DENIED = OwnerPolicy(*("deny",) * 7)
MEMLOCK = {"tiers": {"cpu": {"capacity": "1Gi", "memlock": {"policy": "Require"}}}}


def of(check: Check, policy: OwnerPolicy, **spec: Any) -> CheckResult:  # noqa: ANN401 - parts of a spec
    return verdict(check, resource(**spec), replace(Observed(), policy=policy))


def disk(path: str) -> dict[str, Any]:
    return {
        "tiers": {
            "cpu": {"capacity": "1Gi"},
            "disk": {"capacity": "1Gi", "volume": {"hostPath": {"path": path}}},
        }
    }


def sourced(source: str, fetcher: str = "") -> dict[str, Any]:
    return {"model_source": {"source": source} | ({"fetcher": {"image": fetcher}} if fetcher else {})}


def route(*hostnames: str, **parent: str) -> dict[str, Any]:
    return {"router": {"gateway": {"parentRef": {"name": "g", **parent}, "hostnames": [*hostnames]}}}


@pytest.mark.parametrize(
    ("check", "spec", "reason", "field"),
    [
        (allowed_host_path, disk("/mnt"), "HostPathDenied", "spec.tiers.disk.volume.hostPath"),
        (allowed_root, disk("/mnt"), "RootDenied", "spec.tiers.disk.volume.hostPath"),
        (allowed_root, MEMLOCK, "RootDenied", "spec.tiers.cpu.memlock.policy"),
        (allowed_ipc_lock, MEMLOCK, "IpcLockDenied", "spec.tiers.cpu.memlock.policy"),
        (allowed_images, {"engine": {"image": "a/b:1"}}, "ImageDenied", "spec.engine.image"),
        (allowed_images, {"router": {"image": "a/b:1"}}, "ImageDenied", "spec.router.image"),
        (
            allowed_images,
            {"router": {"gateway": {"provider": "standalone", "standalone": {"image": "a/b:1"}}}},
            "ImageDenied",
            "spec.router.gateway.standalone.image",
        ),
        (allowed_images, sourced("oci://a/b:1#m"), "ImageDenied", "spec.model.source"),
        (allowed_images, sourced("s3://b", "a/b:1"), "ImageDenied", "spec.model.fetcher.image"),
        (allowed_host_path, sourced("file:///mnt"), "HostPathDenied", "spec.model.source"),
        (allowed_host_names, route("a.example"), "HostNameDenied", "spec.router.gateway.hostnames[0]"),
        (allowed_host_names, route(), "HostNameDenied", "spec.router.gateway.hostnames"),
        (
            allowed_gateways,
            route(namespace="other"),
            "GatewayDenied",
            "spec.router.gateway.parentRef.namespace",
        ),
    ],
)
def test_what_is_denied_is_rejected_and_nothing_else(
    check: Check, spec: dict[str, Any], reason: str, field: str
) -> None:
    result = of(check, DENIED, **spec)
    says(result, REJECT, reason, "the cluster's owner lets no ")
    assert "take one," not in result.message  # there is none to take
    assert result.field == field
    says(of(check, OwnerPolicy(), **spec), PASS, "Passed")
    says(of(check, DENIED), PASS, "Passed")


@pytest.mark.parametrize(
    ("path", "allowed"),
    [
        ("/mnt/nvme0", True),
        ("/mnt/nvme0/", True),
        ("/mnt/nvme0/a", False),
        ("/mnt/nvme01", False),
        ("/mnt", False),
        ("/mnt/nvme0/../..", False),
        ("//mnt/nvme0", False),
    ],
)
def test_folders(path: str, *, allowed: bool) -> None:
    result = of(allowed_host_path, OwnerPolicy(host_path=("/mnt/nvme0",)), **disk(path))
    assert result.outcome is (PASS if allowed else REJECT)


@pytest.mark.parametrize(
    ("image", "allowed"),
    [
        ("r.example/team/x:1", True),
        ("r.example/team/x@sha256:" + "0" * 64, True),
        ("r.example/team-evil/x", False),
        ("r.example/one:1", True),
        ("r.example/one-more:1", False),
        ("r.example/one/below:1", False),
        ("whole/x:2", True),
        ("whole/x:3", False),
        ("r.example:5000/team/x:1", False),
        ("host.example:5000/evil", False),
    ],
)
def test_images(image: str, *, allowed: bool) -> None:
    limit = OwnerPolicy(images=("r.example/team/", "r.example/one", "whole/x:2", "host.example"))
    assert of(allowed_images, limit, engine={"image": image}).outcome is (PASS if allowed else REJECT)


@pytest.mark.parametrize(
    ("names", "allowed"),
    [
        (["llm.example.com"], True),
        (["x.team.example.com"], True),
        (["*.team.example.com"], True),
        (["x.y.team.example.com"], True),
        (["team.example.com"], False),
        (["evilteam.example.com"], False),
        (["*.example.com"], False),
        (["llm.example.com", "bank.example"], False),
        ([], False),
    ],
)
def test_host_names(names: list[str], *, allowed: bool) -> None:
    limit = OwnerPolicy(host_names=("llm.example.com", "*.team.example.com"))
    assert of(allowed_host_names, limit, **route(*names)).outcome is (PASS if allowed else REJECT)


@pytest.mark.parametrize(
    ("parent", "allowed"),
    [
        ({}, True),
        ({"namespace": "default"}, True),
        ({"namespace": "edge"}, True),
        ({"namespace": "edge-two"}, False),
        ({"namespace": "shared", "name": "public"}, True),
        ({"namespace": "shared", "name": "private"}, False),
    ],
)
def test_gateways(parent: dict[str, str], *, allowed: bool) -> None:
    limit = OwnerPolicy(foreign_gateways=("edge", "shared/public"))
    assert of(allowed_gateways, limit, **route(**parent)).outcome is (PASS if allowed else REJECT)


TWO_FOLDERS = {
    "model_volume": {"hostPath": {"path": "/models"}},
    "backend": "LMCache",
    "tiers": {
        "cpu": {"capacity": "1Gi"},
        "disk": {
            "capacity": "1Gi",
            "volume": {"emptyDir": {}},
            "extraVolumes": [{"emptyDir": {}}, {"hostPath": {"path": "/mnt/b"}}],
        },
    },
}
BOTH_IMAGES = {"engine": {"image": "a/b:1"}, "router": {"image": "c/d:1"}}


@pytest.mark.parametrize(
    ("check", "policy", "spec", "fields"),
    [
        (
            allowed_host_path,
            OwnerPolicy(host_path=("/a",)),
            TWO_FOLDERS,
            ("spec.tiers.disk.extraVolumes[1].hostPath", "/mnt/b", "spec.model.volume.hostPath", "/models"),
        ),
        (
            allowed_host_path,
            OwnerPolicy(host_path="deny"),
            TWO_FOLDERS,
            ("spec.tiers.disk.extraVolumes[1].hostPath", "spec.model.volume.hostPath"),
        ),
        (
            allowed_root,
            OwnerPolicy(root_engines="deny"),
            TWO_FOLDERS,
            ("spec.tiers.disk.extraVolumes[1].hostPath", "spec.model.volume.hostPath"),
        ),
        (
            allowed_images,
            OwnerPolicy(images=("x/",)),
            BOTH_IMAGES,
            ("spec.engine.image", "a/b:1", "spec.router.image", "c/d:1"),
        ),
        (
            allowed_host_names,
            OwnerPolicy(host_names=("a.example",)),
            route("b.example", "a.example", "c.example"),
            (
                "spec.router.gateway.hostnames[0]",
                "b.example",
                "spec.router.gateway.hostnames[2]",
                "c.example",
            ),
        ),
    ],
)
def test_all_that_is_denied_is_named_at_once(
    check: Check, policy: OwnerPolicy, spec: dict[str, Any], fields: tuple[str, ...]
) -> None:
    result = of(check, policy, **spec)
    first, *others = fields
    assert result.field == first
    says(result, REJECT, result.reason, *others)


def test_both_causes_of_root_are_named() -> None:
    spec = {**disk("/mnt"), "tiers": {**disk("/mnt")["tiers"], **MEMLOCK["tiers"]}}
    result = of(allowed_root, DENIED, **spec)
    assert result.field == "spec.tiers.cpu.memlock.policy"
    says(result, REJECT, "RootDenied", "write Prefer", "spec.tiers.disk.volume.hostPath")


def test_with_a_list_one_of_it_can_be_taken() -> None:
    result = of(allowed_gateways, OwnerPolicy(foreign_gateways=("edge",)), **route(namespace="other"))
    says(
        result,
        REJECT,
        "GatewayDenied",
        "edge; other/g is none of them: take one, or attach to one of namespace default",
    )


@pytest.mark.parametrize(
    ("source", "allowed"),
    [
        ("oci://r.example/team/m:1#folder", True),
        ("oci://r.example/other/m:1", False),
        ("pvc://models", True),
        ("file:///mnt/models", True),
        ("file:///mnt/models/below", False),
    ],
)
def test_a_models_source(source: str, *, allowed: bool) -> None:
    limit = OwnerPolicy(images=("r.example/team/",), host_path=("/mnt/models",))
    found = [of(check, limit, **sourced(source)).outcome for check in (allowed_images, allowed_host_path)]
    assert found.count(REJECT) == (0 if allowed else 1)


def test_a_folder_that_is_only_read_makes_nobody_root() -> None:
    denied = OwnerPolicy(root_engines="deny")
    assert of(allowed_root, denied, **sourced("file:///mnt/models")).outcome is PASS
    result = of(allowed_root, denied, **sourced("file:///mnt/models"), **MEMLOCK)
    says(result, REJECT, "RootDenied", "write Prefer")
    assert "spec.model.source" not in result.message


def test_an_empty_list_allows_nothing() -> None:
    result = of(allowed_gateways, OwnerPolicy(foreign_gateways=()), **route(namespace="other"))
    says(
        result,
        REJECT,
        "GatewayDenied",
        "lets no route attach to a Gateway of another namespace: attach to one of namespace",
    )


TEMPLATES_DENIED = OwnerPolicy(images="deny", root_engines="deny", pod_templates="deny")


def template(part: str = "engine", **pod: Any) -> dict[str, Any]:  # noqa: ANN401 - a pod's fields
    return {part: {"podTemplate": {"spec": pod}}}


def sidecar(**fields: Any) -> dict[str, Any]:  # noqa: ANN401 - a container's fields
    return template(containers=[{"name": "more", **fields}])


@pytest.mark.parametrize(
    ("check", "spec", "reason", "field"),
    [
        (
            allowed_images,
            sidecar(image="a/b:1"),
            "ImageDenied",
            "spec.engine.podTemplate.spec.containers[more].image",
        ),
        (
            allowed_images,
            template("router", volumes=[{"name": "v", "image": {"reference": "a/b:1"}}]),
            "ImageDenied",
            "spec.router.podTemplate.spec.volumes[v].image.reference",
        ),
        (
            allowed_root,
            sidecar(image="a/b:1", securityContext={"runAsUser": 0}),
            "RootDenied",
            "spec.engine.podTemplate.spec.containers[more].securityContext.runAsUser",
        ),
        (
            allowed_root,
            template("router", securityContext={"runAsNonRoot": False}),
            "RootDenied",
            "spec.router.podTemplate.spec.securityContext.runAsNonRoot",
        ),
        (
            allowed_root,
            template(securityContext={"$patch": "replace", "fsGroup": 1}),
            "RootDenied",
            "spec.engine.podTemplate.spec.securityContext",
        ),
        (allowed_templates, template(serviceAccountName="x"), "PodTemplateDenied", "spec.engine.podTemplate"),
        (allowed_templates, template("router"), "PodTemplateDenied", "spec.router.podTemplate"),
        (
            allowed_templates,
            {"router": {"gateway": {"provider": "standalone", "standalone": {"podTemplate": {}}}}},
            "PodTemplateDenied",
            "spec.router.gateway.standalone.podTemplate",
        ),
    ],
)
def test_what_is_denied_is_rejected_by_its_field(
    check: Check, spec: dict[str, Any], reason: str, field: str
) -> None:
    result = of(check, TEMPLATES_DENIED, **spec)
    says(result, REJECT, reason, "the cluster's owner lets no ")
    assert result.field == field
    says(of(check, OwnerPolicy(), **spec), PASS, "Passed")


@pytest.mark.parametrize("pod", [[], {"containers": {}}, {"containers": [1, {"image": 1}], "volumes": "x"}])
def test_a_template_of_another_form_is_refused_elsewhere(pod: object) -> None:
    for check in (allowed_images, allowed_root):
        says(of(check, TEMPLATES_DENIED, engine={"podTemplate": {"spec": pod}}), PASS, "Passed")


def test_a_template_that_says_who_it_runs_as_is_no_root() -> None:
    security = {"$patch": "replace", "runAsNonRoot": True, "runAsUser": 7}
    says(of(allowed_root, TEMPLATES_DENIED, **template(securityContext=security)), PASS, "Passed")


def test_every_template_is_named() -> None:
    both = template() | template("router")
    said = of(allowed_templates, TEMPLATES_DENIED, **both).message
    assert "; spec.router.podTemplate: the cluster's owner lets no" in said
    says(of(allowed_templates, TEMPLATES_DENIED), PASS, "Passed")
