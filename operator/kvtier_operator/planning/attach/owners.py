"""Where an owner's object has its pods: the paths of their specs and annotations, and their labels."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from kvtier_operator.planning.base.label_selector import mapping

Path = tuple[str, ...]
_TEMPLATES: Final[Mapping[str, Path]] = {
    "Pod": (),
    **dict.fromkeys(
        ("Deployment", "StatefulSet", "DaemonSet", "ReplicaSet", "Job", "Rollout"), ("spec", "template")
    ),
    "CronJob": ("spec", "jobTemplate", "spec", "template"),
}
"""Where kinds with one template have it; a Rollout is Argo's."""
_GROUP: Final = "LeaderWorkerSet"
_LLM_SERVICE: Final = "LLMInferenceService"
_LLM_CONTAINER: Final = "main"
"""Of KServe's presets, with whose pod specs a service's own are merged by the containers' names."""
_CONTAINERS: Final = "containers"
KNOWN_KINDS: Final = (*_TEMPLATES, _GROUP, _LLM_SERVICE)
"""Whose pods are found."""


@dataclass(frozen=True, slots=True)
class PodPlace:
    """Pods of one kind in an owner's object."""

    spec: Path  # of the pod's spec, from the object's root
    annotations: Path  # of what becomes the pod's annotations
    labels: Mapping[str, str]  # that its pods have
    offloads: bool = False  # whether KServe gives its engine a connector, by kvCacheOffloading
    models: tuple[str, ...] = ()  # names of the model that the object has outside of its pods
    preset: str = ""  # container that a preset brings where the spec has none of it; empty without presets


def pod_places(document: Mapping[str, Any]) -> tuple[PodPlace, ...]:
    """All of an object; none where it has none that are known here."""
    kind = document.get("kind")
    if isinstance(kind, str) and kind in _TEMPLATES:
        return (_template(document, _TEMPLATES[kind]),)
    if kind == _GROUP:
        root = ("spec", "leaderWorkerTemplate")
        there = mapping(_at(document, root))
        names = (name for name in ("leaderTemplate", "workerTemplate") if name in there)
        # Source: sigs.k8s.io/lws v0.8.0, api/leaderworkerset/v1, SetNameLabelKey
        of_set = {"leaderworkerset.sigs.k8s.io/name": str(mapping(document.get("metadata")).get("name"))}
        return tuple(_template(document, (*root, name), of_set) for name in names)
    if kind == _LLM_SERVICE:
        return (*_of_service(document),)
    return ()


def has_unknown_pods(document: Mapping[str, Any]) -> bool:
    """Whether an object of a kind that is not known here has containers somewhere."""
    return document.get("kind") not in KNOWN_KINDS and _has_containers(document)


def _has_containers(value: object) -> bool:
    if isinstance(value, list):
        return any(map(_has_containers, value))
    inner = mapping(value)
    return any(
        (name == _CONTAINERS and isinstance(part, list)) or _has_containers(part)
        for name, part in inner.items()
    )


def _template(document: Mapping[str, Any], path: Path, added: Mapping[str, str] | None = None) -> PodPlace:
    """Pods of a template, with labels that their controller adds."""
    labels = {**mapping(_at(document, (*path, "metadata", "labels"))), **(added or {})}
    return PodPlace((*path, "spec"), (*path, "metadata", "annotations"), labels)


# Source: kserve v0.20.0, pkg/controller/v1alpha2/llmisvc, workload_single_node.go and workload_multi_node.go.
def _of_service(document: Mapping[str, Any]) -> Iterator[PodPlace]:
    spec = mapping(document.get("spec"))
    has_prefill = "prefill" in spec
    yield from _of_workload(document, ("spec",), "decode" if has_prefill else "both", "")
    if has_prefill:
        yield from _of_workload(document, ("spec", "prefill"), "prefill", "-prefill")


def _of_workload(document: Mapping[str, Any], path: Path, role: str, suffix: str) -> Iterator[PodPlace]:
    workload = mapping(_at(document, path))
    several_nodes, offloads = "worker" in workload, bool(workload.get("kvCacheOffloading"))
    annotations = (*path, "annotations")
    own = {
        "app.kubernetes.io/name": str(mapping(document.get("metadata")).get("name")),
        "app.kubernetes.io/part-of": "llminferenceservice",
        **mapping(workload.get("labels")),
    }
    models = _models_of(mapping(_at(document, ("spec", "model"))))
    served = {"kserve.io/component": "workload", "llm-d.ai/role": role}
    component = "app.kubernetes.io/component"
    leads = f"llminferenceservice-workload{'-leader' if several_nodes else ''}{suffix}"
    if not several_nodes or "template" in workload:
        labels = {**own, **served, component: leads}
        yield PodPlace((*path, "template"), annotations, labels, offloads, models, _LLM_CONTAINER)
    if several_nodes:
        # without a leader of their own, workers serve, and have the role of decode even beside prefill pods
        serves = {} if "template" in workload else {**served, "llm-d.ai/role": suffix[1:] or "decode"}
        follows = f"llminferenceservice-workload-worker{suffix}"
        labels = {**own, **serves, component: follows}
        yield PodPlace((*path, "worker"), annotations, labels, offloads, models, _LLM_CONTAINER)


def _models_of(model: Mapping[str, Any]) -> tuple[str, ...]:
    """What a service calls its model: where the Hub has it, and what it is served as."""
    return str(model.get("uri", "")).removeprefix("hf://"), str(model.get("name", ""))


def _at(document: Mapping[str, Any], path: Path) -> object:
    value: object = document
    for name in path:
        value = mapping(value).get(name)
    return value


def pod_at(document: Mapping[str, Any], place: PodPlace) -> dict[str, Any]:
    """The pods of a place with their labels and annotations; a preset's container is there."""
    spec = _at(document, place.spec)
    if place.preset:
        spec = _with_preset(mapping(spec), place.preset)
    annotations = _at(document, place.annotations)
    if annotations is None or isinstance(annotations, Mapping):
        annotations = {**mapping(annotations)}
    return {"metadata": {"labels": {**place.labels}, "annotations": annotations}, "spec": spec}


def _with_preset(spec: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    containers = spec.get("containers")
    own = containers if isinstance(containers, list) else []
    if any(mapping(container).get("name") == name for container in own):
        return spec
    return {**spec, "containers": [*own, {"name": name}]}


def with_pod(document: Mapping[str, Any], place: PodPlace, pod: Mapping[str, Any]) -> dict[str, Any]:
    """The same object with its pods so."""
    changed = _put(document, place.spec, pod["spec"])
    annotated: dict[str, Any] = _put(changed, place.annotations, pod["metadata"]["annotations"])
    return annotated


def _put(value: object, path: Path, new: object) -> Any:  # noqa: ANN401 - a document, or what is in one
    if not path:
        return new
    return {**mapping(value), path[0]: _put(mapping(value).get(path[0]), path[1:], new)}
