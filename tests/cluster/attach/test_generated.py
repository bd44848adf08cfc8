"""Whatever a pod looks like: with the policy it is made where it is made without."""

from typing import Any, Final

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from kubernetes.dynamic.exceptions import BadRequestError, ForbiddenError, UnprocessibleEntityError
from tests.cluster.attach.place import Place, attached_to
from tests.cluster.attach.shapes import CONTAINER, LABELS, memory

from kvtier_connector.payload import ATTACH_VARIABLE, INIT_NAME, PAYLOAD_PATH

Document = dict[str, Any]
_NAMES: Final = st.sampled_from((CONTAINER, CONTAINER, "sidecar", INIT_NAME))
_VOLUMES: Final = ("shm", "home")
_PATHS: Final = ("/dev/shm", "/home", PAYLOAD_PATH, f"{PAYLOAD_PATH}/numba-cache")  # noqa: S108 - names only
_VARIABLES: Final = ("PYTHONPATH", "VLLM_PLUGINS", "NUMBA_CACHE_DIR", "HOME", ATTACH_VARIABLE)
_RESOURCES: Final = ("cpu", "memory", "ephemeral-storage", "hugepages-2Mi", "nvidia.com/gpu")
_AMOUNTS: Final = ("0", "1", "2", "500m", "1Gi", "64Gi", "128974848", "1e9", "1536.5Mi")
_FROM: Final = {"fieldRef": {"fieldPath": "metadata.name"}}
_USERS: Final = st.fixed_dictionaries(
    {},
    optional={
        "runAsUser": st.sampled_from((0, 2000, 1000660000)),
        "runAsNonRoot": st.booleans(),
        "readOnlyRootFilesystem": st.booleans(),
        "seccompProfile": st.just({"type": "RuntimeDefault"}),
        "capabilities": st.sampled_from(({"drop": ["ALL"]}, {"add": ["IPC_LOCK"]})),
    },
)


_OF_POD: Final = st.fixed_dictionaries(
    {},
    optional={
        "runAsUser": st.sampled_from((0, 2000)),
        "runAsNonRoot": st.booleans(),
        "fsGroup": st.just(2000),
        "seccompProfile": st.just({"type": "RuntimeDefault"}),
    },
)


def _name(container: Document) -> str:
    name: str = container["name"]
    return name


def _some(names: tuple[str, ...], values: st.SearchStrategy[Any]) -> st.SearchStrategy[Document]:
    return st.dictionaries(st.sampled_from(names), values, max_size=3)


_AMOUNT: Final = _some(_RESOURCES, st.sampled_from(_AMOUNTS))
_SENSIBLE: Final = st.sampled_from(
    (
        memory("64Gi"),
        memory("64Gi", "64Gi"),
        memory("8Gi", "1e11"),
        {"limits": {"nvidia.com/gpu": "1", "memory": "1536.5Mi"}},
        {"requests": {"memory": "0"}, "limits": {"ephemeral-storage": "10Gi"}},
    )
)
_ASKED: Final = st.one_of(
    _SENSIBLE, st.fixed_dictionaries({}, optional={"requests": _AMOUNT, "limits": _AMOUNT})
)
_VALUE: Final = st.sampled_from(({}, {"value": ""}, {"value": "a,b:/c d'\"$(HOME)"}, {"valueFrom": _FROM}))
_VARIABLE: Final = st.builds(lambda name, value: {"name": name, **value}, st.sampled_from(_VARIABLES), _VALUE)
_MOUNT: Final = st.builds(
    lambda name, path: {"name": name, "mountPath": path}, st.sampled_from(_VOLUMES), st.sampled_from(_PATHS)
)
_CONTAINER: Final = st.fixed_dictionaries(
    {"name": _NAMES, "image": st.just("x/y:1")},
    optional={
        "command": st.sampled_from((["vllm", "serve"], ["bash", "-c", "eval exec vllm serve"])),
        "args": st.just(["--port", "8000"]),
        "env": st.lists(_VARIABLE, max_size=4),
        "volumeMounts": st.lists(_MOUNT, max_size=2, unique_by=lambda mount: mount["mountPath"]),
        "resources": _ASKED,
        "securityContext": _USERS,
    },
)
_STARTING: Final = st.builds(
    lambda container, restarts: container | ({"restartPolicy": "Always"} if restarts else {}),
    _CONTAINER,
    st.booleans(),
)
_SPEC: Final = st.fixed_dictionaries(
    {
        "containers": st.lists(_CONTAINER, min_size=1, max_size=2, unique_by=_name),
        "volumes": st.permutations([{"name": name, "emptyDir": {}} for name in _VOLUMES]),
    },
    optional={
        "initContainers": st.lists(_STARTING, max_size=2, unique_by=_name),
        "securityContext": _OF_POD,
        "hostUsers": st.booleans(),
        "shareProcessNamespace": st.booleans(),
    },
)
_ANNOTATED: Final = st.sampled_from(({}, {"annotations": {}}, {"annotations": {"a": "b"}}))


@pytest.fixture(scope="module")
def places(published: Place, untouched: Place) -> tuple[Place, Place]:
    return published, untouched


@settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture], max_examples=150)
@given(spec=_SPEC, annotated=_ANNOTATED)
def test_no_pod_is_refused_for_the_tier(
    places: tuple[Place, Place], spec: Document, annotated: Document
) -> None:
    metadata = {"generateName": "chat-", "labels": LABELS, **annotated}
    document = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}
    with_policy, without = (_outcome(place, document) for place in places)
    if without:
        assert with_policy.get("qosClass") == without["qosClass"]


def _outcome(place: Place, document: Document) -> Document:
    """What became of it: its status, or nothing where the server refused it."""
    try:
        made = place.create(document, dry_run=True)
    except (BadRequestError, ForbiddenError, UnprocessibleEntityError):
        return {}
    status: Document = made["status"]
    return status | {"attached": attached_to(made)}
