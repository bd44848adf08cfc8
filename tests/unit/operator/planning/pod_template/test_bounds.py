"""What a pod template has to be for the operator's own sake: few things to ask nodes, text for one line."""

from typing import Any

import pytest
from tests.cases.planning import resource

from kvtier_operator.errors import InvalidInputError
from kvtier_operator.planning.objects.engine.deployment import engine_deployment
from kvtier_operator.planning.observed import Observed
from kvtier_operator.planning.planner import make_plan

SIDECAR = {"name": "more", "image": "a/b:1"}
ESCAPE = "a\x1b[31m"


def said(pod: dict[str, Any], **metadata: object) -> str:
    with pytest.raises(InvalidInputError) as refused:
        make_plan(resource(engine={"podTemplate": {"spec": pod, "metadata": metadata}}), Observed())
    [problem] = refused.value.problems
    return str(problem).removeprefix("spec.engine.podTemplate.")


def test_it_tolerates_no_more_than_the_field_beside_it_may() -> None:
    """Each is asked of every node of the cluster."""
    assert said({"tolerations": [{}] * 65}) == "spec.tolerations: has 65, 64 at most; remove some"
    make_plan(resource(engine={"podTemplate": {"spec": {"tolerations": [{}] * 64}}}), Observed())


@pytest.mark.parametrize(
    ("pod", "field"),
    [
        ({"nodeSelector": {"a": ESCAPE}}, "nodeSelector[a]"),
        ({"nodeSelector": {"a\nb": "c"}}, "nodeSelector[a b]"),
        ({"containers": [SIDECAR | {"image": ESCAPE}]}, "containers[more].image"),
        ({"volumes": [{"name": "x", "persistentVolumeClaim": {"claimName": ESCAPE}}]}, "claimName"),
        ({"containers": [SIDECAR | {"resources": {"limits": {"a\nb": "1"}}}]}, "limits[a b]"),
    ],
)
def test_names_may_be_shown_as_they_are(pod: dict[str, Any], field: str) -> None:
    line = said(pod)
    assert line.isprintable()
    assert line.endswith(f"{field}: has characters that cannot be printed; remove them")


def test_a_field_s_name_comes_on_one_line() -> None:
    assert said({ESCAPE: 1}).startswith("spec.a?[31m: is not taken here")
    assert said({"containers": [SIDECAR | {"name": ESCAPE}]}).isprintable()


def test_what_nobody_shows_may_have_several_lines() -> None:
    env = [{"name": "SCRIPT", "value": "a\nb"}]
    template = {"spec": {"containers": [SIDECAR | {"env": env}]}, "metadata": {"annotations": {"a": "b\nc"}}}
    made = make_plan(resource(engine={"podTemplate": template}), Observed())
    assert engine_deployment(made)["spec"]["template"]["spec"]["containers"][-1]["env"] == env
