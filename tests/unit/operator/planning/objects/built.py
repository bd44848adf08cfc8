"""Builds the objects of a resource that is written as changes to the minimal one, and finds one of them."""

from collections.abc import Mapping
from typing import Any

from tests.unit.operator.planning.backends.planned import resource

from kvtier_operator.planning.objects import build_objects
from kvtier_operator.planning.observed import Observed
from kvtier_operator.planning.plan import Plan
from kvtier_operator.planning.planner import make_plan

Object = dict[str, Any]


def plan_for(changes: Mapping[str, object]) -> Plan:
    return make_plan(resource(changes), Observed())


def objects(changes: Mapping[str, object]) -> tuple[Object, ...]:
    return build_objects(plan_for(changes))


def identity(built: Object) -> tuple[str, str]:
    return built["kind"], built["metadata"]["labels"]["app.kubernetes.io/component"]


def one(built: tuple[Object, ...], kind: str, component: str) -> Object:
    [found] = [each for each in built if identity(each) == (kind, component)]
    return found


def pod(changes: Mapping[str, object], component: str = "engine") -> Object:
    template: Object = one(objects(changes), "Deployment", component)["spec"]["template"]["spec"]
    return template


def engine_container(changes: Mapping[str, object]) -> Object:
    [container] = pod(changes)["containers"]
    found: Object = container
    return found


def pages(resources: Object) -> Object:
    return {name: size for name, size in resources.items() if name.startswith("hugepages-")}
