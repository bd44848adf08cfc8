"""Pods of all kinds: what comes out is a pod, changed once, and only where it may be."""

import copy
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.cases.attached import IMAGE, attach_plan

from kvtier_operator.api.quantity import parse_quantity
from kvtier_operator.planning.attach.left_alone import LeftAlone, Reason
from kvtier_operator.planning.attach.plan import AttachPlan
from kvtier_operator.planning.attach.pod import attach_pod
from kvtier_operator.planning.base.label_selector import mapping

_NAMES = st.sampled_from(["main", "vllm", "proxy", "cache", "logs", "kvtier-payload", "kv-disk-0"])
_AMOUNTS = st.sampled_from(["0", "1", "500m", "64Gi", "1e3", "12345678", "0.5Gi", "4Ti", "100M", "lots"])
_RESOURCES = st.sampled_from(["cpu", "memory", "ephemeral-storage", "hugepages-2Mi", "nvidia.com/gpu"])
_KINDS = st.fixed_dictionaries(
    {}, optional={kind: st.none() | st.dictionaries(_RESOURCES, _AMOUNTS) for kind in ("requests", "limits")}
)
_VARIABLES = st.fixed_dictionaries(
    {"name": st.sampled_from(["PYTHONPATH", "VLLM_PLUGINS", "NUMBA_CACHE_DIR", "HOME"])},
    optional={"value": st.sampled_from(["", "/a:/b", "kvtier", "x,kvtier"])},
)
_SOURCED = st.just({"name": "PYTHONPATH", "valueFrom": {"fieldRef": {}}})
_CONTAINERS = st.fixed_dictionaries(
    {"name": _NAMES, "image": st.just("vllm/vllm-openai")},
    optional={
        "command": st.just(["sh", "-c", "vllm serve"]),
        "args": st.lists(st.text(max_size=3), max_size=2),
        "env": st.none() | st.lists(_VARIABLES, max_size=4) | st.lists(_SOURCED, max_size=1),
        "resources": st.none() | _KINDS,
        "securityContext": st.just({"runAsUser": 2000, "privileged": True}),
        "volumeMounts": st.lists(st.just({"name": "cache", "mountPath": "/cache"}), max_size=1) | st.none(),
    },
)
_SPECS = st.fixed_dictionaries(
    {
        "containers": st.lists(
            _CONTAINERS, min_size=1, max_size=3, unique_by=lambda container: str(container["name"])
        )
    },
    optional={
        "initContainers": st.lists(_CONTAINERS, max_size=1) | st.none(),
        "volumes": st.lists(st.fixed_dictionaries({"name": _NAMES}), max_size=1) | st.none(),
        "nodeSelector": st.dictionaries(st.just("kubernetes.io/os"), st.sampled_from(["linux", "windows"])),
    },
)
_PODS = st.fixed_dictionaries(
    {"spec": _SPECS},
    optional={
        "metadata": st.fixed_dictionaries({}, optional={"annotations": st.none() | st.just({"a": "b"})})
    },
)
_PLANS = st.sampled_from(
    [
        attach_plan(),
        attach_plan(container="main", disk={"capacity": "1Ti", "volume": {"emptyDir": {}}}),
        attach_plan(cpu_fields={"hugepages": {"policy": "Require"}}),
    ]
)
_CHANGED = ("env", "resources", "volumeMounts")


@settings(max_examples=300)
@given(_PLANS, _PODS)
def test_only_what_may_change_changes(plan: AttachPlan, pod: dict[str, Any]) -> None:
    before = copy.deepcopy(pod)
    after = attach_pod(plan, pod, IMAGE)
    assert pod == before
    if isinstance(after, LeftAlone):
        return
    _is_valid(plan, after["spec"])
    _is_as_before(before["spec"], after["spec"])
    again = attach_pod(plan, after, IMAGE)
    assert isinstance(again, LeftAlone)
    assert again.reason is Reason.ALREADY_ATTACHED


def _is_valid(plan: AttachPlan, spec: dict[str, Any]) -> None:
    """What the API server asks of what was added."""
    for items in (spec["volumes"], [*spec["initContainers"], *spec["containers"]]):
        ours = [item["name"] for item in items if item["name"].startswith(("kvtier", "kv-"))]
        assert len(ours) == len({*ours})
    volumes = {volume["name"] for volume in spec["volumes"]}
    for container in (spec["initContainers"][0], *spec["containers"]):
        paths = [mount["mountPath"] for mount in container.get("volumeMounts") or ()]
        assert len(paths) == len({*paths})
        mounted = {mount["name"] for mount in container.get("volumeMounts") or ()}
        assert mounted - {"cache"} <= volumes
    engine = next(container for container in spec["containers"] if _is_engine(container))
    assert all(
        ("value" in variable) + ("valueFrom" in variable) <= 1 or _is_own(variable)
        for variable in engine["env"]
    )
    if plan.hugepages:
        requests, limits = (mapping(engine["resources"].get(kind)) for kind in ("requests", "limits"))
        assert plan.hugepages.keys() <= limits.keys()
        assert not requests or plan.hugepages.keys() <= requests.keys()


def _is_own(variable: dict[str, Any]) -> bool:
    """Whether it is as its owner wrote it, right or wrong."""
    return variable["name"] not in {"KVTIER_ATTACH", "PYTHONPATH", "VLLM_PLUGINS"}


def _is_engine(container: dict[str, Any]) -> bool:
    return isinstance(container.get("env"), list) and any(
        isinstance(variable, dict) and variable.get("name") == "KVTIER_ATTACH"
        for variable in container["env"]
    )


def _is_as_before(before: dict[str, Any], after: dict[str, Any]) -> None:
    lists = ("containers", "initContainers", "volumes")
    rest = ({name: value for name, value in spec.items() if name not in lists} for spec in (before, after))
    assert next(rest) == next(rest)
    assert after["initContainers"][1:] == (before.get("initContainers") or [])
    own = before.get("volumes") or []
    assert after["volumes"][: len(own)] == own
    assert len(before["containers"]) == len(after["containers"])
    for old, new in zip(before["containers"], after["containers"], strict=True):
        if not _is_engine(new):
            assert new == old
            continue
        assert [*filter(lambda name: name not in _CHANGED, new)] == [
            *filter(lambda name: name not in _CHANGED, old)
        ]
        assert all(new[name] == old[name] for name in old if name not in _CHANGED)
        _asks_for_no_other_class(old.get("resources") or {}, new.get("resources") or {})


def _asks_for_no_other_class(old: dict[str, Any], new: dict[str, Any]) -> None:
    for kind in ("requests", "limits"):
        was, now = (resources.get(kind) or {} for resources in (old, new))
        assert was.get("cpu") == now.get("cpu")
        assert ("memory" in was) == ("memory" in now)
        if "memory" in was:
            assert (parse_quantity(was["memory"]) > 0) == (parse_quantity(now["memory"]) > 0)
