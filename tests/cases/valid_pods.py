"""Pods that Kubernetes takes, of any shape."""

from typing import Any, Final

from hypothesis import strategies as st

from kvtier_operator.api.quantity import parse_quantity

_NAMES: Final = st.sampled_from(["main", "vllm", "proxy"])
_AMOUNTS: Final = st.sampled_from(["0", "64Mi", "1.5Gi", "32Gi", "100000k", "1e9"])


@st.composite
def _resources(draw: st.DrawFn) -> dict[str, Any]:
    resources: dict[str, dict[str, Any]] = {}
    kinds: tuple[tuple[str, st.SearchStrategy[str]], ...] = (
        ("cpu", st.sampled_from(["0", "500m", "4"])),
        ("memory", _AMOUNTS),
        ("ephemeral-storage", _AMOUNTS),
        ("nvidia.com/gpu", st.just("1")),
        ("hugepages-2Mi", st.just("4Mi")),
    )
    for name, amounts in kinds:
        limit, request = draw(st.none() | amounts), draw(st.none() | amounts)
        if "/" in name or "hugepages" in name:
            request = limit
        if limit is not None and request is not None and parse_quantity(request) > parse_quantity(limit):
            request = limit
        for side, amount in (("limits", limit), ("requests", request)):
            if amount is not None:
                resources.setdefault(side, {})[name] = amount
    return resources


_VARIABLES: Final = st.fixed_dictionaries(
    {"name": st.sampled_from(["PYTHONPATH", "VLLM_PLUGINS", "NUMBA_CACHE_DIR", "A"])},
    optional={"value": st.sampled_from(["", "/opt/app", "a,kvtier", "a"])},
)
_GUARANTEED: Final = {side: {"cpu": "4", "memory": "32Gi"} for side in ("requests", "limits")}
_CONTAINERS: Final = st.fixed_dictionaries(
    {"name": _NAMES, "image": st.just("image:1")},
    optional={
        "command": st.just(["sh", "-c", "exec vllm serve m"]),
        "args": st.just(["--port", "1"]),
        "env": st.lists(_VARIABLES, max_size=4),
        "resources": _resources() | st.just(_GUARANTEED),
        "securityContext": st.fixed_dictionaries(
            {}, optional={"runAsUser": st.just(1000), "privileged": st.booleans()}
        ),
        "volumeMounts": st.lists(
            st.fixed_dictionaries(
                {
                    "name": st.just("data"),
                    "mountPath": st.sampled_from(["/data", "/models"]),
                }
            ),
            max_size=2,
            unique_by=lambda mount: mount["mountPath"],
        ),
    },
)


def _named_once(size: int) -> st.SearchStrategy[list[dict[str, Any]]]:
    return st.lists(_CONTAINERS, min_size=size, max_size=3, unique_by=lambda container: container["name"])


_VOLUMES: Final[st.SearchStrategy[list[dict[str, Any]]]] = st.sets(st.sampled_from(["data", "home"])).map(
    lambda names: [{"name": name, "emptyDir": {}} for name in sorted(names)]
)
_INIT_CONTAINERS: Final = _named_once(0).map(
    lambda containers: [{**one, "name": f"init-{one['name']}"} for one in containers]
)
_METADATA: Final[st.SearchStrategy[dict[str, Any]]] = st.fixed_dictionaries(
    {},
    optional={
        "labels": st.dictionaries(st.sampled_from(["app", "role"]), st.just("x"), max_size=2),
        "annotations": st.dictionaries(st.sampled_from(["a", "b"]), st.just("x"), max_size=2),
    },
)
_OPTIONAL: Final[dict[str, st.SearchStrategy[Any]]] = {
    "initContainers": _INIT_CONTAINERS,
    "volumes": _VOLUMES,
    "nodeSelector": st.sampled_from([{}, {"kubernetes.io/os": "linux"}]),
    "serviceAccountName": st.just("owner"),
}
PODS: Final[st.SearchStrategy[dict[str, Any]]] = st.fixed_dictionaries(
    {"metadata": _METADATA, "spec": st.fixed_dictionaries({"containers": _named_once(1)}, optional=_OPTIONAL)}
)
