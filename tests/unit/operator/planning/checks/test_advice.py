"""What kvtier says to do can be done: no message asks for a field that is set or means nothing there."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final, Self

import hypothesis.strategies as st
from hypothesis import given, settings
from tests.cases.generated import FIELDS, resources
from tests.cases.nodes import GIB, node

from kvtier_operator.api.parse import parse_resource
from kvtier_operator.api.resource import KVCacheTier
from kvtier_operator.api.spec.engine import Device
from kvtier_operator.api.spec.tiers import Ability, Backend, backends_with
from kvtier_operator.errors import InvalidInputError
from kvtier_operator.planning.cluster.nodes_fit import nodes_fit
from kvtier_operator.planning.observed import Machine, Observed
from kvtier_operator.planning.planner import make_plan
from kvtier_operator.planning.verdict import Outcome

_NAMES: Final = {path.rpartition(".")[2]: path for path in FIELDS}
_CAMEL: Final = "|".join(sorted(name for name in _NAMES if not name.islower()))
_WORD: Final = re.compile(
    r"(?P<end>[;:.](?=\s|$)|\bremove it\b)"
    r"|\b(?P<verb>set|give|use|add|raise|lower)\b"
    rf"|(?P<field>\bspec(?:\.\w+)+|\b(?:{_CAMEL})\b)(?P<change> to (?!plan\b))?"
)


@dataclass(frozen=True, slots=True)
class Advice:
    """A field that a message says to do something with.

    Attributes:
        path: Its path.
        verb: What to do.
        change: Whether it is to be changed, to something that the message names.
    """

    path: str
    verb: str
    change: bool

    @classmethod
    def of(cls, message: str) -> Iterator[Self]:
        """Every one of a message. A verb goes for all fields up to the end of its clause."""
        verb = ""
        for word in _WORD.finditer(message):
            if word["end"]:
                verb = ""
            elif word["verb"]:
                verb = word["verb"]
            elif verb:
                path = word["field"]
                yield cls(path if path.startswith("spec.") else _NAMES[path], verb, bool(word["change"]))


def test_advice_is_found_in_a_message() -> None:
    message = "spec.model.name: set spec.backend to KVTier, or lower kvCacheMemory; spec.replicas does"
    assert list(Advice.of(message)) == [
        Advice("spec.backend", "set", change=True),
        Advice("spec.engine.kvCacheMemory", "lower", change=False),
    ]


@st.composite
def cases(draw: st.DrawFn) -> dict[str, Any]:
    """Whole resources of which the planner has something to say."""
    document = draw(resources())
    spec = document["spec"]
    if draw(st.integers(0, 3)) == 0 or not isinstance(spec, dict):
        return document
    model = draw(st.sampled_from(["Qwen/Qwen3-32B", "Qwen/Qwen3-0.6B", "deepseek-ai/DeepSeek-V3", "x/y"]))
    engine: dict[str, Any] = {"device": draw(st.sampled_from(Device)).value}
    sizes = st.sampled_from(["1Mi", "1Gi", "20Gi", "100Gi", "1Ti"])
    for field in ("kvCacheMemory", "gpuMemory", "shmSize"):
        if draw(st.booleans()) and (field != "gpuMemory" or engine["device"] == "gpu"):
            engine[field] = draw(sizes)
    engine |= draw(
        st.sampled_from(
            [
                {},
                {"maxModelLen": 4096},
                {"blockSize": 24},
                {"tensorParallelSize": 3},
                {"kvCacheDtype": "bfloat16", "extraArgs": ["--dtype=float32"]},
                {"resources": {"requests": {"memory": "30Gi", "ephemeral-storage": "9Ti"}}},
                {"resources": {"limits": {"nvidia.com/gpu": 64}}},
                {"env": [{"name": "VLLM_CPU_KVCACHE_SPACE", "value": "1"}]},
                {"affinity": {"podAntiAffinity": _APART}},
                *({"extraArgs": [argument]} for argument in _ARGUMENTS),
            ]
        )
    )
    cpu: dict[str, Any] = {"capacity": draw(sizes)}
    cpu["hugepages"] = {"policy": draw(st.sampled_from(["Require", "Prefer", "Never"]))}
    cpu["memlock"] = {"policy": draw(st.sampled_from(["Require", "Prefer", "Never"]))}
    tiers: dict[str, Any] = {"cpu": cpu}
    if draw(st.booleans()):
        tiers["disk"] = {"capacity": draw(sizes), "volume": draw(st.sampled_from(_VOLUMES))}
    weights: dict[str, Any] = {"weights": draw(sizes)} if draw(st.booleans()) else {}
    if draw(st.booleans()):
        weights["volume"] = draw(st.sampled_from(_VOLUMES))
    geometry = {"geometry": {"kvBytesPerToken": 65536}} if model == "x/y" else {}
    flavor, version = draw(
        st.sampled_from([("llm-d", None), ("gaie", "1.4.0"), ("gaie", "1.5.0"), ("builtin", None)])
    )
    return document | {
        "spec": {
            "model": {"name": model, **weights, **geometry},
            "backend": draw(st.sampled_from(Backend)).value,
            "replicas": draw(st.integers(0, 3)),
            "engine": engine,
            "tiers": tiers,
            "router": {
                "flavor": flavor,
                "version": version,
                "weights": {"gpuPrefix": draw(st.integers(0, 1))},
            },
        }
    }


_APART: Final = {
    "requiredDuringSchedulingIgnoredDuringExecution": [
        {
            "topologyKey": "kubernetes.io/hostname",
            "labelSelector": {"matchLabels": {"app.kubernetes.io/component": "engine"}},
        }
    ]
}
_ARGUMENTS: Final = (
    "--gpu-memory-utilization=0.5",
    "--kv-cache-memory-bytes=1",
    "--num-gpu-blocks-override=1",
    "--max-model-len=1",
    "--block-size=16",
    "--revision=main",
)
_VOLUMES: Final[tuple[dict[str, Any], ...]] = (
    {"emptyDir": {}},
    {"ephemeral": {}},
    {"hostPath": {"path": "/mnt"}},
    {"persistentVolumeClaim": {"claimName": "kv"}},
)


@st.composite
def worlds(draw: st.DrawFn) -> Observed:
    """A cluster, or a machine that has too little of everything."""
    small = st.integers(1, 1 << 36)
    if draw(st.booleans()):
        return Observed()
    return Observed(
        machine=Machine(
            memory_bytes=draw(small), shm_bytes=draw(small), disk_free_bytes=draw(small), memlock_bytes=1
        )
    )


def _said_of(resource: KVCacheTier, observed: Observed, memory_bytes: int) -> Iterator[str]:
    """All that a person reads of it in `kvtier plan` and in NodesFit."""
    try:
        plan = make_plan(resource, observed)
    except InvalidInputError as error:
        yield from (problem.message for problem in error.problems)
        return
    yield from (check.message for check in plan.checks if check.outcome is not Outcome.PASS)
    yield from plan.notes
    if observed.machine is None:
        small = {"memory": memory_bytes, "ephemeral-storage": GIB, "nvidia.com/gpu": 1}
        yield nodes_fit(plan, [node(allocatable=small)]).message


@settings(max_examples=100)
@given(document=cases(), observed=worlds(), memory_gib=st.integers(1, 1 << 11))
def test_no_message_asks_for_what_cannot_help(
    document: dict[str, Any], observed: Observed, memory_gib: int
) -> None:
    try:
        resource = parse_resource(document, "case")
    except InvalidInputError as error:
        # a rule's text is the same for every resource, and most name all of a choice
        for problem in error.problems:
            for advice in Advice.of(problem.message):
                assert not _means_nothing(advice.path, document), problem
        return
    for message in _said_of(resource, observed, memory_gib * GIB):
        for advice in Advice.of(message):
            assert not _means_nothing(advice.path, document), message
            if advice.verb in {"raise", "lower"}:
                assert _value(document, advice.path) is not None or _has_default(advice.path), message
            elif advice.verb in {"set", "give"} and not advice.change:
                assert _value(document, advice.path) is None, message


def _means_nothing(path: str, document: dict[str, Any]) -> bool:
    device, backend = _value(document, "spec.engine.device"), _value(document, "spec.backend")
    if path in {"spec.engine.gpuMemory", "spec.engine.gpuMemoryUtilization"}:
        return device == Device.CPU
    if path == "spec.tiers.disk.writesPerHour":
        return backend not in {None, *backends_with(Ability.BOUNDS_WRITES)}
    return path == "spec.tiers.disk.extraVolumes" and backend not in backends_with(Ability.SPREADS_DISK)


def _value(document: dict[str, Any], path: str) -> object:
    place: object = document
    for name in path.split("."):
        place = place.get(name) if isinstance(place, dict) else None
    return place


def _has_default(path: str) -> bool:
    place: Any = _MINIMAL.spec
    for name in path.split(".")[1:]:
        place = next(
            (
                getattr(place, attribute, None)
                for attribute, field in type(place).model_fields.items()
                if name in {field.alias, attribute}
            ),
            None,
        )
        if place is None:
            return False
    return True


_MINIMAL: Final[KVCacheTier] = parse_resource(
    {
        "apiVersion": "kvtier.dev/v1alpha1",
        "kind": "KVCacheTier",
        "metadata": {"name": "case"},
        "spec": {"model": {"name": "x"}, "tiers": {"cpu": {"capacity": "1Gi"}}},
    },
    "case",
)
