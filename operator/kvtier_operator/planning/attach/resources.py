"""What an engine that is given tiers asks for, and what asks for no more: the pod's QoS class stays."""

from collections.abc import Mapping
from typing import Any, Final

from kvtier_operator.api.quantity import parse_bytes, parse_quantity
from kvtier_operator.planning.attach.left_alone import LeftAloneError, Reason
from kvtier_operator.planning.attach.plan import AttachPlan
from kvtier_operator.planning.base.label_selector import mapping
from kvtier_operator.planning.base.node import CPU
from kvtier_operator.planning.units import quantity

_KINDS: Final = ("requests", "limits")
MEMORY: Final = "memory"
_STORAGE: Final = "ephemeral-storage"
_COPIED: Final = (CPU, MEMORY, _STORAGE)
"""What the init container asks for as the engine does: neither the pod's sum nor its QoS class changes, and
what a LimitRange lets the one have, the other may."""


def attached_resources(plan: AttachPlan, resources: Mapping[str, Any]) -> dict[str, Any]:
    """A container's resources with the tiers': more of what it asks for, and of nothing else.

    Huge pages alone are new to it; Kubernetes wants a limit on memory or CPU beside them.

    Raises:
        LeftAloneError: A quantity cannot be read, or there are no limits beside which huge pages could be.
    """
    raised = {**resources}
    added = _extra_bytes(plan)
    for kind in _KINDS:
        if isinstance(resources.get(kind), Mapping):
            raised[kind] = _more(resources[kind], added, f"resources.{kind}")
    if plan.hugepages:
        _add_hugepages(raised, {name: parse_bytes(amount) for name, amount in plan.hugepages.items()})
    return raised


def _extra_bytes(plan: AttachPlan) -> Mapping[str, int]:
    return {MEMORY: plan.memory_bytes, _STORAGE: plan.node_disk_bytes}


def added_text(plan: AttachPlan) -> str:
    """What is added to amounts of the engine's container that are there, for `without_added`."""
    return ",".join(f"{name}={quantity(amount)}" for name, amount in _extra_bytes(plan).items() if amount)


def without_added(amounts: Mapping[str, Any], text: str) -> dict[str, Any]:
    """Requests or limits before that was added to them; what cannot be read is left as it is."""
    before = dict(amounts)
    for entry in text.split(","):
        name, _, amount = entry.partition("=")
        try:
            own_bytes = parse_bytes(str(amounts.get(name, 0))) - parse_bytes(amount)
        except ValueError:
            continue
        if own_bytes > 0:
            before[name] = quantity(own_bytes)
    return before


def _more(amounts: Mapping[str, Any], added: Mapping[str, int], field: str) -> dict[str, Any]:
    more = dict(amounts)
    for name, extra_bytes in added.items():
        if extra_bytes and name in amounts and (own := _bytes(amounts[name], f"{field}.{name}")):
            more[name] = quantity(own + extra_bytes)
    return more


def _add_hugepages(resources: dict[str, Any], pages: Mapping[str, int]) -> None:
    limits = mapping(resources.get("limits"))
    if not {CPU, MEMORY} & limits.keys():
        raise LeftAloneError(
            Reason.NO_LIMITS,
            "spec.tiers.cpu.hugepages requires huge pages, and its container has no limits beside which it "
            "could ask for them: set limits, or policy Prefer",
        )
    for kind in _KINDS:
        # without requests the API server takes the limits
        if kind in resources:
            own = mapping(resources[kind])
            more = {
                name: _bytes(own.get(name, 0), f"resources.{kind}.{name}") + pages[name] for name in pages
            }
            resources[kind] = {**own, **{name: quantity(amount) for name, amount in more.items()}}


def _bytes(amount: object, field: str) -> int:
    try:
        return parse_bytes(str(amount))
    except ValueError as error:
        raise LeftAloneError(Reason.NOT_UNDERSTOOD, f"{field}: {error}") from error


def copied_resources(resources: Mapping[str, Any]) -> dict[str, Any]:
    """What the init container asks for, of an engine's container as its owner wrote it."""
    copied = {}
    for kind in _KINDS:
        amounts = mapping(resources.get(kind))
        if own := {name: amounts[name] for name in _COPIED if name in amounts}:
            copied[kind] = own
    return copied


def asks_for_memory(resources: Mapping[str, Any]) -> bool:
    """Whether a container has a request or limit of memory, to which that of the tiers is added."""
    amounts = (mapping(resources.get(kind)).get(MEMORY) for kind in _KINDS)
    return any(amount is not None and parse_quantity(str(amount)) > 0 for amount in amounts)
