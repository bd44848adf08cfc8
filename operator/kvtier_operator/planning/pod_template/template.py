"""What pod templates add to the plan's pods, and what of it is refused."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from kvtier_operator.api.resource import Spec
from kvtier_operator.errors import InvalidInputError, Problem
from kvtier_operator.planning.base.label_selector import mapping, mappings
from kvtier_operator.planning.base.merge import DIRECTIVE, merged
from kvtier_operator.planning.base.names import Component
from kvtier_operator.planning.objects.engine.containers import runs_as_root
from kvtier_operator.planning.objects.engine.deployment import planned_engine_template
from kvtier_operator.planning.objects.gateway.standalone import planned_gateway_template
from kvtier_operator.planning.objects.picker import planned_picker_template
from kvtier_operator.planning.plan import Plan
from kvtier_operator.planning.pod_template.tables import engine_table, gateway_table, picker_table

ENGINE: Final = "spec.engine.podTemplate"
ROUTER: Final = "spec.router.podTemplate"
GATEWAY: Final = "spec.router.gateway.standalone.podTemplate"
OF_COMPONENT: Final = {Component.ENGINE: ENGINE, Component.PICKER: ROUTER, Component.GATEWAY: GATEWAY}
"""Path of the template of each component's pods."""


def refuse_templates(plan: Plan) -> None:
    """Raises an InvalidInputError with a problem for each field by which a template cannot be merged."""
    spec, problems = plan.resource.spec, list[Problem]()
    if (template := spec.engine.pod_template) is not None:
        table = engine_table(planned_engine_template(plan)["spec"], root=runs_as_root(spec))
        problems += table(template, ENGINE)
    if (template := spec.router.pod_template) is not None:
        problems += picker_table(planned_picker_template(plan)["spec"])(template, ROUTER)
    planned = planned_gateway_template(plan)
    if planned and spec.router.standalone and (template := spec.router.standalone.pod_template) is not None:
        problems += gateway_table(planned["spec"])(template, GATEWAY)
    if problems:
        raise InvalidInputError("", *problems)


def pod_templates(spec: Spec) -> dict[str, Mapping[str, Any]]:
    """Those that a resource has, by their paths."""
    gateway = spec.router.standalone
    templates = {
        ENGINE: spec.engine.pod_template,
        ROUTER: spec.router.pod_template,
        GATEWAY: gateway.pod_template if gateway else None,
    }
    return {path: template for path, template in templates.items() if template is not None}


def engine_affinity(spec: Spec) -> Mapping[str, Any]:
    """Of the engines' pods, the template's included."""
    pod = mapping((spec.engine.pod_template or {}).get("spec"))
    return merged(spec.engine.affinity or {}, mapping(pod.get("affinity")))


def engine_mounts(spec: Spec) -> tuple[str, ...]:
    """Folders at which the template mounts volumes of its own in the engine's container."""
    pod = mapping((spec.engine.pod_template or {}).get("spec"))
    engines = (
        container
        for container in mappings(pod.get("containers"))
        if container.get("name") == Component.ENGINE
    )
    mounts = (mount for engine in engines for mount in mappings(engine.get("volumeMounts")))
    return tuple(path for mount in mounts if isinstance(path := mount.get("mountPath"), str))


def added_containers(template: Mapping[str, Any] | None, path: str) -> dict[str, str]:
    """Paths of the containers in a template that bring an image of their own, by their names."""
    pod = mapping((template or {}).get("spec"))
    return {
        str(container["name"]): place
        for place, container in _containers(f"{path}.spec", pod)
        if {"name", "image"} <= container.keys()
    }


def template_notes(spec: Spec) -> tuple[str, ...]:
    """What a reader of the budget should know of containers that are not the planner's."""
    added = [*added_containers(spec.engine.pod_template, ENGINE)]
    if not added:
        return ()
    return (f"{ENGINE} adds {', '.join(added)}: what they request comes on top of the engine's budget",)


def images(spec: Spec) -> dict[str, str]:
    """Images of containers and volumes, by the paths of their fields."""
    references: dict[str, object] = {}
    for path, pod in _pods(spec):
        for place, container in _containers(path, pod):
            references[f"{place}.image"] = container.get("image")
        for volume in mappings(pod.get("volumes")):
            place = f"{path}.volumes[{volume.get('name')}].image.reference"
            references[place] = mapping(volume.get("image")).get("reference")
    return {path: image for path, image in references.items() if isinstance(image, str)}


def root_fields(spec: Spec) -> list[str]:
    """Paths of the fields by which a container may be root: kvtier's pods say that none is."""
    fields: list[str] = []
    for path, pod in _pods(spec):
        for place, part in ((path, pod), *_containers(path, pod)):
            security = mapping(part.get("securityContext"))
            fields += [
                f"{place}.securityContext.{name}"
                for name, root in (("runAsUser", 0), ("runAsNonRoot", False))
                if name in security and security[name] == root
            ]
        whole = mapping(pod.get("securityContext"))
        if DIRECTIVE in whole and "runAsNonRoot" not in whole:
            fields.append(f"{path}.securityContext")
    return fields


def _pods(spec: Spec) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for path, template in pod_templates(spec).items():
        yield f"{path}.spec", mapping(template.get("spec"))


def _containers(path: str, pod: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for kind in ("initContainers", "containers"):
        for container in mappings(pod.get(kind)):
            yield f"{path}.{kind}[{container.get('name')}]", container
