"""The one thing to do next about a resource: the first of these that applies."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

from kvtier_common.tier import BEYOND_DEVICE, Tier
from kvtier_operator.cli.cluster.resource import ENDING, READY, STARTING, ConditionRow, PodRow, ResourceView
from kvtier_operator.planning.scaling import FULL_SHARE


@dataclass(frozen=True, slots=True)
class NextStep:
    """What to do, and the command for it; empty where there is none."""

    text: str
    command: str = ""


class _Rule(NamedTuple):
    """A step with what of a resource makes it the next one, which is `it` in its texts."""

    problem_of: Callable[[ResourceView], object]
    text: str
    command: str = ""
    for_own_engines: bool = False  # whether the command is only for engines of the resource's own


def next_step(view: ResourceView) -> NextStep:
    """What to do next; that it serves is the last to be said."""
    for problem_of, text, command, for_own_engines in _RULES:
        if problem := problem_of(view):
            if for_own_engines and view.is_attached:
                command = ""  # noqa: PLW2901 - others own them
            if isinstance(problem, PodRow):
                text, command = _POD_STEPS.get(problem.state, (text, command))  # noqa: PLW2901 - the pod's own
            numbers = "Attached says what holds it up" if view.is_attached else "NodesFit has the numbers"
            parts = (part.format(it=problem, view=view, numbers=numbers) for part in (text, command))
            return NextStep(*parts)
    return NextStep("nothing: it serves")


def _failing(view: ResourceView) -> ConditionRow | None:
    return next((condition for condition in view.conditions if condition.status == "False"), None)


def _is_refused(view: ResourceView) -> bool:
    return any(condition.type == "Accepted" and condition.status == "False" for condition in view.conditions)


def _pod_in_trouble(view: ResourceView) -> PodRow | None:
    return next((pod for pod in view.pods if pod.state not in (READY, STARTING, ENDING)), None)


def _is_full(view: ResourceView) -> bool:
    is_full = view.engines.used_share.get(Tier.CPU, 0.0) >= FULL_SHARE
    return is_full and bool(view.engines.evicted_chunks.get(Tier.CPU))


_KUBECTL: Final = "kubectl --namespace {view.namespace}"
_LOGS: Final = f"{_KUBECTL} logs {{it.name}} --all-containers --previous --ignore-errors"
"""A container that ended once, such as the doctor, has no earlier log: kubectl would stop there."""
_DESCRIBE: Final = f"{_KUBECTL} describe pod {{it.name}}"
_PULL: Final = ("let the node pull its image; `kvtier images` lists those of a mirror", _DESCRIBE)
_POD_STEPS: Final[Mapping[str, tuple[str, str]]] = {
    "DoctorFailed": (
        "give the node what the doctor misses",
        f"{_KUBECTL} logs {{it.name}} --container doctor",
    ),
    "ContainerCrashed": ("read why {it.name} ended", _LOGS),
    "OOMKilled": ("read what {it.name} did before it took more memory than its limit", _LOGS),
    "Unschedulable": ("make room for {it.name} on a node: {numbers}", _DESCRIBE),
    "ErrImagePull": _PULL,
    "ImagePullBackOff": _PULL,
}
_RULES: Final = (
    _Rule(
        lambda view: not (view.is_acted_on and view.conditions),
        "see whether the operator runs, and serves this namespace: it has not acted on this spec yet",
        "kubectl get deployments --all-namespaces --selector app.kubernetes.io/name=kvtier-operator",
    ),
    _Rule(
        _is_refused,
        "change the spec as Accepted says, and look at the plan before you apply it",
        "kvtier plan {view.name} --namespace {view.namespace}",
    ),
    _Rule(_pod_in_trouble, "see why {it.name} does not start", _DESCRIBE),
    _Rule(
        lambda view: any(pod.state == STARTING for pod in view.pods),
        "wait until it is ready",
        f"{_KUBECTL} wait kvct/{{view.name}} --for condition=Ready --timeout 20m",
    ),
    _Rule(_failing, "do what {it.type} says", f"{_KUBECTL} describe kvct {{view.name}}"),
    _Rule(
        lambda view: not (view.replicas or view.is_attached),
        "ask for engines: spec.replicas is 0",
        f"{_KUBECTL} scale kvct {{view.name}} --replicas 1",
    ),
    _Rule(
        lambda view: not view.engines.engines,
        "let the engines' metrics be read, to know what the tiers do: see what was not read",
    ),
    _Rule(
        lambda view: view.engines.degraded,
        "read why {it} of {view.engines.engines} engines cannot use their disk",
        f"{_KUBECTL} logs deployment/{{view.name}}-engine --container engine",
        for_own_engines=True,
    ),
    _Rule(
        lambda view: view.engines.unpaid,
        "give a faster disk, or take spec.tiers.disk away: {it} of {view.engines.engines} engines compute "
        "sooner than they read from it",
    ),
    _Rule(lambda view: not view.engines.asked_tokens, "send requests: no prompt has come yet"),
    _Rule(
        lambda view: any((tier.saved_s or 0.0) < 0 for tier in view.tiers),
        "measure: loading has taken longer than computing would have, by the engines' own counters",
        f"{_KUBECTL} get kvct {{view.name}} --output yaml | kvtier bench job --filename - "
        "| kubectl apply --filename -",
        for_own_engines=True,
    ),
    _Rule(
        lambda view: not any(view.engines.hit_tokens[tier] for tier in BEYOND_DEVICE),
        "send prompts that begin alike, longer than a chunk, and more of them than the device holds: no "
        "tier was needed yet",
    ),
    _Rule(
        _is_full,
        "think of a larger spec.tiers.cpu.capacity: the tier is full and drops chunks; `kvtier simulate` "
        "says what more would bring",
    ),
)
