from dataclasses import replace
from typing import Any

import pytest
from tests.cases.checks import PASS, REJECT, says, verdict
from tests.cases.planning import resource

from kvtier_operator.planning.base.owner_policy import OwnerPolicy
from kvtier_operator.planning.checks.check import Check
from kvtier_operator.planning.checks.policy import allowed_images, allowed_root, allowed_templates
from kvtier_operator.planning.observed import Observed
from kvtier_operator.planning.verdict import CheckResult

DENIED = OwnerPolicy(images="deny", root_engines="deny", pod_templates="deny")


def of(check: Check, policy: OwnerPolicy, **spec: Any) -> CheckResult:  # noqa: ANN401 - parts of a spec
    return verdict(check, resource(**spec), replace(Observed(), policy=policy))


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
    ],
)
def test_what_is_denied_is_rejected_by_its_field(
    check: Check, spec: dict[str, Any], reason: str, field: str
) -> None:
    result = of(check, DENIED, **spec)
    says(result, REJECT, reason, "the cluster's owner lets no ")
    assert result.field == field
    says(of(check, OwnerPolicy(), **spec), PASS, "Passed")


@pytest.mark.parametrize("pod", [[], {"containers": {}}, {"containers": [1, {"image": 1}], "volumes": "x"}])
def test_a_template_of_another_form_is_refused_elsewhere(pod: object) -> None:
    for check in (allowed_images, allowed_root):
        says(of(check, DENIED, engine={"podTemplate": {"spec": pod}}), PASS, "Passed")


def test_a_template_that_says_who_it_runs_as_is_no_root() -> None:
    security = {"$patch": "replace", "runAsNonRoot": True, "runAsUser": 7}
    says(of(allowed_root, DENIED, **template(securityContext=security)), PASS, "Passed")


def test_every_template_is_named() -> None:
    both = template() | template("router")
    said = of(allowed_templates, DENIED, **both).message
    assert "; spec.router.podTemplate: the cluster's owner lets no" in said
    says(of(allowed_templates, DENIED), PASS, "Passed")
