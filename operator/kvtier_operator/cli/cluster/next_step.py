"""The one thing to do next about a resource: the first of these that applies."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from kvtier_common.tier import BEYOND_DEVICE, Tier
from kvtier_operator.cli.cluster.resource import ENDING, READY, STARTING, ResourceView

_FULL: Final = 0.95


@dataclass(frozen=True, slots=True)
class NextStep:
    """What to do, and the command for it; empty where there is none."""

    text: str
    command: str = ""


_Rule = Callable[[ResourceView], NextStep | None]


def next_step(view: ResourceView) -> NextStep:
    """What to do next; that it serves is the last to be said."""
    found = (rule(view) for rule in _RULES)
    return next((each for each in found if each is not None), NextStep("nothing: it serves"))


def _operator_absent(view: ResourceView) -> NextStep | None:
    if view.is_acted_on and view.conditions:
        return None
    return NextStep(
        "see whether the operator runs, and serves this namespace: it has not acted on this spec yet",
        "kubectl get deployments --all-namespaces --selector app.kubernetes.io/name=kvtier-operator",
    )


def _refusal(view: ResourceView) -> NextStep | None:
    if not any(condition.type == "Accepted" and condition.status == "False" for condition in view.conditions):
        return None
    return NextStep(
        "change the spec as Accepted says, and look at the plan before you apply it",
        f"kvtier plan {view.name} --namespace {view.namespace}",
    )


_LOGS: Final = "logs {pod} --all-containers --previous --ignore-errors"
"""A container that ended once, such as the doctor, has no earlier log: kubectl would stop there."""
_DESCRIBE: Final = "describe pod {pod}"
_POD_STEPS: Final[Mapping[str, tuple[str, str]]] = {
    "DoctorFailed": ("give the node what the doctor misses", "logs {pod} --container doctor"),
    "ContainerCrashed": ("read why {pod} ended", _LOGS),
    "OOMKilled": ("read what {pod} did before it took more memory than its limit", _LOGS),
    "Unschedulable": ("make room for {pod} on a node: NodesFit has the numbers", _DESCRIBE),
    "ErrImagePull": ("let the node pull its image; `kvtier images` lists those of a mirror", _DESCRIBE),
    "ImagePullBackOff": ("let the node pull its image; `kvtier images` lists those of a mirror", _DESCRIBE),
}
_ANY_POD: Final = ("see why {pod} does not start", _DESCRIBE)


def _pod(view: ResourceView) -> NextStep | None:
    trouble = next((pod for pod in view.pods if pod.state not in (READY, STARTING, ENDING)), None)
    if trouble is None:
        return None
    text, command = _POD_STEPS.get(trouble.state, _ANY_POD)
    return NextStep(text.format(pod=trouble.name), f"{_kubectl(view)} {command.format(pod=trouble.name)}")


def _starting(view: ResourceView) -> NextStep | None:
    if not any(pod.state == STARTING for pod in view.pods):
        return None
    return NextStep(
        "wait until it is ready",
        f"{_kubectl(view)} wait kvct/{view.name} --for condition=Ready --timeout 20m",
    )


def _condition(view: ResourceView) -> NextStep | None:
    failing = next((condition for condition in view.conditions if condition.status == "False"), None)
    if failing is None:
        return None
    return NextStep(f"do what {failing.type} says", f"{_kubectl(view)} describe kvct {view.name}")


def _none_wanted(view: ResourceView) -> NextStep | None:
    if view.replicas:
        return None
    return NextStep(
        "ask for engines: spec.replicas is 0", f"{_kubectl(view)} scale kvct {view.name} --replicas 1"
    )


def _no_metrics(view: ResourceView) -> NextStep | None:
    if view.engines.engines:
        return None
    return NextStep("let the engines' metrics be read, to know what the tiers do: see what was not read")


def _broken_disk(view: ResourceView) -> NextStep | None:
    if not view.engines.degraded:
        return None
    return NextStep(
        f"read why {view.engines.degraded} of {view.engines.engines} engines cannot use their disk",
        f"{_kubectl(view)} logs deployment/{view.name}-engine --container engine",
    )


def _slow_disk(view: ResourceView) -> NextStep | None:
    if not view.engines.unpaid:
        return None
    return NextStep(
        f"give a faster disk, or take spec.tiers.disk away: {view.engines.unpaid} of {view.engines.engines} "
        "engines compute sooner than they read from it"
    )


def _no_prompts(view: ResourceView) -> NextStep | None:
    return None if view.engines.asked_tokens else NextStep("send requests: no prompt has come yet")


def _slow_loads(view: ResourceView) -> NextStep | None:
    if not any((tier.saved_s or 0.0) < 0 for tier in view.tiers):
        return None
    return NextStep(
        "measure: loading has taken longer than computing would have, by the engines' own counters",
        f"{_kubectl(view)} get kvct {view.name} --output yaml | kvtier bench job --filename - "
        "| kubectl apply --filename -",
    )


def _no_hits(view: ResourceView) -> NextStep | None:
    if any(view.engines.hit_tokens[tier] for tier in BEYOND_DEVICE):
        return None
    return NextStep(
        "send prompts that begin alike, longer than a chunk, and more of them than the device holds: no "
        "tier was needed yet"
    )


def _full_tier(view: ResourceView) -> NextStep | None:
    is_full = view.engines.used_share.get(Tier.CPU, 0.0) >= _FULL
    if not is_full or not view.engines.evicted_chunks.get(Tier.CPU):
        return None
    return NextStep(
        "think of a larger spec.tiers.cpu.capacity: the tier is full and drops chunks; `kvtier simulate` "
        "says what more would bring"
    )


_RULES: Final[tuple[_Rule, ...]] = (
    *(_operator_absent, _refusal, _pod, _starting, _condition, _none_wanted, _no_metrics),
    *(_broken_disk, _slow_disk, _no_prompts, _slow_loads, _no_hits, _full_tier),
)


def _kubectl(view: ResourceView) -> str:
    return f"kubectl --namespace {view.namespace}"
