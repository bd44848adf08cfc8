"""A pod of others with the tiers in it: a pure patch, of a pod or of a pod template.

Never changed are command, arguments, image and security context of the engine's container, other containers,
labels and selectors; and nothing of the node is mounted.
"""

import copy
from collections.abc import Mapping
from typing import Any, Final

from kvtier_connector.payload import COPY_COMMAND, INIT_NAME, PAYLOAD_PATH, VOLUME_NAME
from kvtier_operator.planning.attach.container import engine_index, require_changeable, require_free_names
from kvtier_operator.planning.attach.delivery import Delivery
from kvtier_operator.planning.attach.environment import attached_environment
from kvtier_operator.planning.attach.left_alone import LeftAlone, LeftAloneError, Reason
from kvtier_operator.planning.attach.plan import AttachPlan
from kvtier_operator.planning.attach.resources import added_text, attached_resources, copied_resources
from kvtier_operator.planning.base.label_selector import mapping
from kvtier_operator.planning.base.names import ADDED, ATTACHED

_AS_THE_ENGINE: Final = ("runAsUser", "runAsGroup", "runAsNonRoot", "seccompProfile", "seLinuxOptions")
"""Who the init container is, where the engine's container says that of itself."""
_LISTS: Final = (
    ("spec", "volumes"),
    ("spec", "initContainers"),
    ("engine", "env"),
    ("engine", "volumeMounts"),
)


def attach_pod(
    plan: AttachPlan,
    pod: Mapping[str, Any],
    image: str,
    *,
    before_queue: bool = False,
    delivery: Delivery = Delivery.INIT_CONTAINER,
) -> dict[str, Any] | LeftAlone:
    """The same pod with the tiers, or why it is left alone.

    Args:
        plan: What it is given.
        pod: A pod or the template of one, which is not changed: labels and annotations in `metadata`, the
            pod's spec in `spec`.
        image: kvtier/connector, which has the payload.
        before_queue: Whether a queue sees the pod after this, as where its owner applies the manifest later.
        delivery: How the payload comes into it.
    """
    try:
        require_changeable(pod, before_queue=before_queue)
        return _attached(plan, copy.deepcopy({**pod}), image, delivery)
    except LeftAloneError as why:
        return why.left_alone


def _attached(plan: AttachPlan, pod: dict[str, Any], image: str, delivery: Delivery) -> dict[str, Any]:
    spec = pod.get("spec")
    if not isinstance(spec, dict):
        raise LeftAloneError(Reason.NOT_UNDERSTOOD, "spec: not a pod's spec")
    place = engine_index(spec, plan.attach.container)
    engine: dict[str, Any] = spec["containers"][place]
    _require_lists(spec, engine)
    _require_mappings(pod, engine)
    require_free_names(plan, spec, engine)
    resources = mapping(engine.get("resources"))
    disk = plan.disk
    payload = _payload(image, engine, copied_resources(resources))
    raised = attached_resources(plan, resources)
    engine["env"] = attached_environment(
        engine.get("env") or [],
        plan.settings,
        delivery.environment,
        from_elsewhere=bool(engine.get("envFrom")),
    )
    if raised:
        engine["resources"] = raised
    engine["volumeMounts"] = [
        *(engine.get("volumeMounts") or []),
        *(_mount(name, path) for name, path in delivery.mounts.items()),
        *([_mount(disk.name, disk.mount_path)] if disk else []),
    ]
    if delivery is Delivery.INIT_CONTAINER:
        # first, so that it is there before a sidecar that the engine waits for
        spec["initContainers"] = [payload, *(spec.get("initContainers") or [])]
    spec["volumes"] = [
        *(spec.get("volumes") or []),
        *delivery.volumes(image),
        *([{"name": disk.name, **copy.deepcopy(dict(disk.source))}] if disk else []),
    ]
    metadata = mapping(pod.get("metadata"))
    annotations = {**mapping(metadata.get("annotations")), ATTACHED: plan.name}
    if delivery is Delivery.IMAGE_VOLUME:
        annotations[ADDED] = added_text(plan)
    return {**pod, "metadata": {**metadata, "annotations": annotations}}


def _require_lists(spec: Mapping[str, Any], engine: Mapping[str, Any]) -> None:
    """Leave pods alone of which a part is not what a pod has there (LeftAloneError)."""
    for owner, field in _LISTS:
        value = (spec if owner == "spec" else engine).get(field)
        if value is not None and not isinstance(value, list):
            raise LeftAloneError(Reason.NOT_UNDERSTOOD, f"{field}: not a list")


def _require_mappings(pod: Mapping[str, Any], engine: Mapping[str, Any]) -> None:
    resources = engine.get("resources")
    parts = {
        "metadata.annotations": mapping(pod.get("metadata")).get("annotations"),
        "resources": resources,
        **{f"resources.{kind}": mapping(resources).get(kind) for kind in ("requests", "limits")},
    }
    for field, value in parts.items():
        if value is not None and not isinstance(value, Mapping):
            raise LeftAloneError(Reason.NOT_UNDERSTOOD, f"{field}: not names and values")


def _mount(name: str, path: str) -> dict[str, Any]:
    return {"name": name, "mountPath": path}


def _payload(image: str, engine: Mapping[str, Any], resources: Mapping[str, Any]) -> dict[str, Any]:
    """The init container that copies the payload, admitted wherever the engine's container is."""
    security = mapping(engine.get("securityContext"))
    return {
        "name": INIT_NAME,
        "image": image,
        "command": [*COPY_COMMAND],
        **({"resources": dict(resources)} if resources else {}),
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
            "readOnlyRootFilesystem": True,
            **{name: copy.deepcopy(security[name]) for name in _AS_THE_ENGINE if name in security},
        },
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "volumeMounts": [_mount(VOLUME_NAME, PAYLOAD_PATH)],
    }
