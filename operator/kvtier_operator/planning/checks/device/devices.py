"""Whether the devices that the resource names are ones that a pod can ask for, and enough for its ranks."""

import re
from collections.abc import Mapping, Sequence
from typing import Final

from kvtier_operator.api.formats import SUBDOMAIN
from kvtier_operator.api.quantity import parse_quantity
from kvtier_operator.api.spec.pod import PodClaim
from kvtier_operator.planning.checks.check import CheckInput, Verdicts
from kvtier_operator.planning.pod.devices import (
    engine_devices,
    is_accelerator,
    is_device,
    is_of_a_network,
    named_devices,
)
from kvtier_operator.planning.units import many
from kvtier_operator.planning.verdict import CheckResult

_VERDICTS: Final = Verdicts("devices", "spec.engine.resources.limits")
_KUBERNETES_OWN: Final = ("cpu", "memory", "ephemeral-storage")
_HUGEPAGES: Final = "hugepages-"
_MIG: Final = "/mig-"
_OF_A_QUOTA: Final = "requests."
_NAME: Final = re.compile(rf"{SUBDOMAIN}/[A-Za-z0-9]([-A-Za-z0-9_.]{{0,61}}[A-Za-z0-9])?", re.ASCII)
"""Kubernetes, apimachinery's IsQualifiedName, and IsExtendedResourceName for what a quota calls a device."""


def devices(given: CheckInput) -> CheckResult:
    """A rank takes a device; what claims allocate cannot be counted here."""
    if given.observed.machine is not None:
        return _VERDICTS.passed("a local run takes this machine's devices", reason="NotLooked")
    if faults := _faults(given):
        return _VERDICTS.reject_each("NoSuchResource", faults)
    named = {name: count for name, count in named_devices(given.spec).items() if is_accelerator(name)}
    if given.spec.engine.resource_claims:
        return _claimed(given.spec.engine.resource_claims, named)
    asked = ", ".join(f"{count} {name}" for name, count in engine_devices(given.spec).items())
    return _named(given, named, asked) if named else _VERDICTS.passed(asked or "no devices")


def _claimed(claims: Sequence[PodClaim], named: Mapping[str, str]) -> CheckResult:
    """A claim may be of anything; of devices like the named ones unless one is called after a network."""
    names = ", ".join(each.name for each in claims)
    if named and not any(is_of_a_network(each.name) for each in claims):
        counted = ", ".join(f"{count} {name}" for name, count in named.items())
        return _VERDICTS.warn(
            "DevicesTwice",
            f"{counted} beside the claims {names}: a pod gets the devices of both; where the claims are of "
            "what vLLM computes on, leave these out",
            by_itself="asks for both",
        )
    return _VERDICTS.passed(f"devices by claims: {names}", reason="Claimed")


def _named(given: CheckInput, named: Mapping[str, str], asked: str) -> CheckResult:
    if sum(int(parse_quantity(count)) for count in named.values()) < given.ranks:
        return _VERDICTS.warn(
            "DevicesBelowRanks",
            f"{asked} for {many(given.ranks, 'rank')}: vLLM takes a device a rank; ask for {given.ranks}, "
            "or lower spec.engine.tensorParallelSize or dataParallelSize",
        )
    if given.spec.engine.tensor_parallel_size > 1 and any(_MIG in name for name in named):
        return _VERDICTS.warn(
            "SlicesApart",
            f"{asked}: CUDA shows a process one MIG slice and joins none, so ranks cannot share layers; set "
            "spec.engine.tensorParallelSize to 1 and take a larger slice, or whole GPUs",
            field="spec.engine.tensorParallelSize",
        )
    return _VERDICTS.passed(f"{asked}, as asked for")


def _faults(given: CheckInput) -> list[tuple[str, str]]:
    """What Kubernetes would refuse of a pod (pkg/apis/core/validation, ValidateContainerResourceName)."""
    resources = given.spec.engine.resources
    return [
        (f"spec.engine.resources.{where}.{name}", fault)
        for where, amounts in (("requests", resources.requests), ("limits", resources.limits))
        for name, amount in amounts.items()
        if (fault := _fault(name, str(amount)))
    ]


def _fault(name: str, amount: str) -> str:
    if is_device(name):
        if not _NAME.fullmatch(name) or name.startswith(_OF_A_QUOTA):
            return (
                "no name of a device: write its domain in lower case, one / and a word of letters, digits, "
                "-, _ and ., such as nvidia.com/gpu"
            )
        whole = parse_quantity(amount) % 1 == 0
        return "" if whole else f"{amount} of a device is no whole number; ask for 1 or more"
    if "/" in name or name in _KUBERNETES_OWN or name.startswith(_HUGEPAGES):
        return ""
    own = ", ".join(_KUBERNETES_OWN)
    return f"no resource of a pod: write {own} or a device with its domain, such as nvidia.com/gpu"
