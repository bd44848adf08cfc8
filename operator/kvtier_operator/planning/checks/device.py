"""Whether the devices are ones that the backend, the image and the nodes have."""

import re
from collections.abc import Mapping, Sequence
from typing import Final

from kvtier_operator.api.formats import SUBDOMAIN
from kvtier_operator.api.quantity import parse_quantity
from kvtier_operator.api.spec.engine import Device, EngineSpec
from kvtier_operator.api.spec.gpu import USUAL_NODE_GPUS
from kvtier_operator.api.spec.pod import PodClaim
from kvtier_operator.api.spec.tiers import DEFAULT_BACKEND
from kvtier_operator.planning.backends.engine_image import engine_image as image_of
from kvtier_operator.planning.backends.engine_image import engine_minor
from kvtier_operator.planning.base.devices import (
    engine_devices,
    is_accelerator,
    is_device,
    is_of_a_network,
    is_xpu,
    named_devices,
    not_tested,
    of_another_maker,
    without_cuda,
)
from kvtier_operator.planning.base.vllm_minor import KNOWN_MINORS
from kvtier_operator.planning.checks.check import CheckInput, check
from kvtier_operator.planning.pod.engine_cpu import process_count
from kvtier_operator.planning.pod.engine_memory import computed_memory, given_memory
from kvtier_operator.planning.units import many, size
from kvtier_operator.planning.verdict import CheckResult


@check("spec.backend")
def backend_device(parts: CheckInput) -> CheckResult:
    """Device cpu makes vLLM 0.32's own offloading raise (v1/kv_offload/cpu/spec.py, get_worker)."""
    backend, device = parts.spec.backend, parts.spec.engine.device
    needs = parts.traits.needs_gpu if device is Device.CPU else None
    if needs and not needs.starts:
        return backend_device.reject(
            "DeviceNotSupported",
            f"{parts.traits.title} refuses device cpu and stops at start; set spec.backend to "
            f"{DEFAULT_BACKEND}",
        )
    if needs:
        return backend_device.warn(
            "DeviceNotTested",
            f"backend {backend} is made for GPUs and not tested on device cpu; spec.backend "
            f"{DEFAULT_BACKEND} is",
            by_itself="starts the engines all the same",
            weight=130,
        )
    if (others := not_tested(parts.spec)) and parts.observed.machine is None:
        return backend_device.warn(
            "DeviceNotTested",
            f"backend {backend} is made for GPUs of NVIDIA and AMD and not tested on {', '.join(others)}"
            f"{_why(parts, others)}; serve the model there without a KVCacheTier, or try one engine",
            by_itself="starts the engines all the same, with figures of an NVIDIA GPU",
            weight=130,
        )
    return backend_device.passed(f"backend {backend} works on device {device}")


def _why(parts: CheckInput, others: tuple[str, ...]) -> str:
    """What is known of them: kvtier's connector stands on vLLM's offloading (kv_offload/cpu/spec.py)."""
    if not parts.traits.offloading or all(map(is_xpu, others)):
        return ""
    return ", where vLLM's offloading ends the engine: it takes GPUs with CUDA or ROCm and XPUs alone"


@check("spec.backend", name="lmcache-deprecated")
def deprecated_backend(parts: CheckInput) -> CheckResult:
    """What its own project says of it."""
    if deprecated := parts.traits.deprecated:
        return deprecated_backend.warn(
            deprecated.reason, deprecated.message, by_itself=deprecated.by_itself, weight=-60
        )
    return deprecated_backend.passed(f"backend {parts.spec.backend} is current")


_KUBERNETES_OWN: Final = ("cpu", "memory", "ephemeral-storage")
_HUGEPAGES: Final = "hugepages-"
_MIG: Final = "/mig-"
_OF_A_QUOTA: Final = "requests."
_NAME: Final = re.compile(rf"{SUBDOMAIN}/[A-Za-z0-9]([-A-Za-z0-9_.]{{0,61}}[A-Za-z0-9])?", re.ASCII)
"""Kubernetes, apimachinery's IsQualifiedName, and IsExtendedResourceName for what a quota calls a device."""


@check("spec.engine.resources.limits")
def devices(parts: CheckInput) -> CheckResult:
    """A rank takes a device; what claims allocate cannot be counted here."""
    if parts.observed.machine is not None:
        return devices.passed("a local run takes this machine's devices", reason="NotLooked")
    if faults := _resource_faults(parts):
        return devices.reject_each("NoSuchResource", faults)
    named = {name: count for name, count in named_devices(parts.spec).items() if is_accelerator(name)}
    if parts.spec.engine.resource_claims:
        return _by_claims(parts.spec.engine.resource_claims, named)
    if others := of_another_maker(parts.spec):
        gpu = parts.spec.engine.gpu
        return devices.reject(
            "GPUOfAnotherMaker",
            f"{gpu} is {gpu.resource if gpu else ''}, and spec.engine.resources ask for {', '.join(others)}: "
            "name the GPU that the pods get, or ask for this one's",
            field="spec.engine.gpu",
        )
    asked = ", ".join(f"{count} {name}" for name, count in engine_devices(parts.spec).items())
    return _by_limits(parts, named, asked) if named else devices.passed(asked or "no devices")


def _by_claims(claims: Sequence[PodClaim], named: Mapping[str, str]) -> CheckResult:
    """A claim may be of anything; of devices like the named ones unless one is called after a network."""
    names = ", ".join(claim.name for claim in claims)
    if named and not any(is_of_a_network(claim.name) for claim in claims):
        amounts = ", ".join(f"{count} {name}" for name, count in named.items())
        return devices.warn(
            "DevicesTwice",
            f"{amounts} beside the claims {names}: a pod gets the devices of both; where the claims are of "
            "what vLLM computes on, leave these out",
            by_itself="asks for both",
        )
    return devices.passed(f"devices by claims: {names}", reason="Claimed")


def _by_limits(parts: CheckInput, named: Mapping[str, str], asked: str) -> CheckResult:
    if sum(int(parse_quantity(count)) for count in named.values()) < parts.ranks:
        return devices.warn(
            "DevicesBelowRanks",
            f"{asked} for {many(parts.ranks, 'rank')}: vLLM takes a device a rank; ask for {parts.ranks}, "
            "or lower spec.engine.tensorParallelSize or dataParallelSize",
        )
    slices, gpu = any(_MIG in name for name in named), parts.spec.engine.gpu
    if slices and gpu:
        return devices.warn(
            "SliceOfAGPU",
            f"{asked}: a slice has a part of the memory of {gpu}, and planned is all of it: give the slice's "
            "in spec.engine.gpuMemory in place of gpu",
            field="spec.engine.gpu",
        )
    if slices and parts.spec.engine.tensor_parallel_size > 1:
        return devices.warn(
            "SlicesApart",
            f"{asked}: CUDA shows a process one MIG slice and joins none, so ranks cannot share layers; set "
            "spec.engine.tensorParallelSize to 1 and take a larger slice, or whole GPUs",
            field="spec.engine.tensorParallelSize",
        )
    return devices.passed(f"{asked}, as asked for")


def _resource_faults(parts: CheckInput) -> list[tuple[str, str]]:
    """What Kubernetes would refuse of a pod (pkg/apis/core/validation, ValidateContainerResourceName)."""
    resources = parts.spec.engine.resources
    return [
        (f"spec.engine.resources.{where}.{name}", fault)
        for where, amounts in (("requests", resources.requests), ("limits", resources.limits))
        for name, amount in amounts.items()
        if (fault := _resource_fault(name, str(amount)))
    ]


def _resource_fault(name: str, amount: str) -> str:
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


@check("spec.engine.image")
def device_image(parts: CheckInput) -> CheckResult:
    """The installation's own images are of vLLM for CUDA, or for CPUs."""
    others = without_cuda(parts.spec)
    if not others or parts.spec.engine.image or parts.observed.machine is not None:
        return device_image.passed("no other device than the image's is named")
    return device_image.warn(
        "ImageOfAnotherDevice",
        f"kvtier's own images have vLLM for NVIDIA GPUs, and the engine asks for {', '.join(others)}: "
        "name an image that is built for that",
    )


@check("spec.engine.tensorParallelSize")
def node_devices(parts: CheckInput) -> CheckResult:
    """A pod is on one node, and engines do not span pods."""
    gpu = parts.spec.engine.gpu
    most = gpu.node_gpus if gpu else USUAL_NODE_GPUS
    # of MIG slices a node has more
    whole = [device for device in engine_devices(parts.spec).items() if device[0].endswith("/gpu")]
    name, ranks = max(
        ((name, parse_quantity(count)) for name, count in whole),
        key=lambda device: device[1],
        default=("", 0),
    )
    if parts.observed.machine is not None or parts.observed.nodes is not None or ranks <= most:
        return node_devices.passed("a usual node has as many devices")
    return node_devices.warn(
        "MoreThanANodeHas",
        f"{ranks} {name} in one pod, and a node with {gpu or 'such GPUs'} usually has {most}: lower "
        "spec.engine.tensorParallelSize or dataParallelSize, or see that a node of yours has as many",
        by_itself="makes pods that wait for such a node",
        weight=120,
    )


@check("spec.engine.image")
def engine_image(parts: CheckInput) -> CheckResult:
    """The connector refuses minors of vLLM that it does not know."""
    if parts.observed.machine is not None:
        return engine_image.passed("a local run takes this machine's vLLM", reason="NotLooked")
    minor = engine_minor(parts.spec, parts.observed)
    if minor is not None and minor not in KNOWN_MINORS:
        return _of_another_minor(parts, minor)
    image = image_of(parts.spec, parts.observed.images)
    if parts.traits.in_payload:
        return engine_image.passed(f"{parts.traits.title} is copied into {image}, which needs vLLM alone")
    return engine_image.passed(f"backend {parts.spec.backend} is in {image}, as far as its name tells")


def _of_another_minor(parts: CheckInput, minor: int) -> CheckResult:
    known = " and ".join(f"0.{number}" for number in KNOWN_MINORS)
    then = (
        f"{parts.traits.title} refuses others and vLLM ends"
        if parts.traits.refuses_other_minors
        else "figures and arguments may differ"
    )
    return engine_image.warn(
        "VersionNotTested",
        f"the tag says vLLM 0.{minor}, and kvtier is made for {known}: {then}; name an image of one of these",
        by_itself="plans as for the nearest of them",
        weight=150,
    )


@check("spec.engine.resourceClaims")
def shared_claim(parts: CheckInput) -> CheckResult:
    """A ResourceClaim is allocated once, and its devices are on one node as a rule."""
    pods = parts.spec.most_pods
    shared = [
        (index, claim.resource_claim_name)
        for index, claim in enumerate(parts.spec.engine.resource_claims)
        if claim.resource_claim_name
    ]
    if not shared or pods <= 1:
        return shared_claim.passed("no devices that pods share")
    index, name = shared[0]
    return shared_claim.warn(
        "ClaimShared",
        f"{pods} engine pods would share the devices of ResourceClaim {name}, and its node: use "
        "resourceClaimTemplateName, which makes a claim with each pod",
        field=f"{shared_claim.field}[{index}].resourceClaimName",
    )


@check("spec.engine.resources.requests.cpu")
def cpu_request(parts: CheckInput) -> CheckResult:
    """A pod without a CPU request gets the least weight there is, 2 of 1,024 for a core.

    Source: Kubernetes, pkg/kubelet/cm/helpers_linux.go, MinShares.
    """
    engine = parts.spec.engine
    if parts.observed.machine is not None:
        return cpu_request.passed("the engine is a process of this machine")
    if engine.device is not Device.CPU:
        return _cpu_limit(engine)
    asked = engine.resources.requests.get("cpu") or engine.resources.limits.get("cpu")
    if asked is None:
        return cpu_request.warn(
            "NoCPURequest",
            "vLLM computes on the CPU and asks for none: beside other pods it gets next to nothing; "
            "set it to the cores that one engine needs",
            by_itself="requests none",
        )
    return cpu_request.passed(f"{asked} of a CPU asked for")


def _cpu_limit(engine: EngineSpec) -> CheckResult:
    """Of an engine whose processes poll beside its GPUs: the kernel stops them when the limit is used up."""
    limit, processes = engine.resources.limits.get("cpu"), process_count(engine)
    if limit is None or parse_quantity(str(limit)) >= processes:
        return cpu_request.passed("no limit below a core for each process of vLLM")
    return cpu_request.warn(
        "CPULimitLow",
        f"{limit} of a CPU for {processes} processes of vLLM that poll: the kernel stops them in "
        f"between, and GPUs wait; remove the limit, or set {processes} at least",
        by_itself="sets the limit as it is written",
        field="spec.engine.resources.limits.cpu",
    )


_LEAST_SHARE: Final = 2
"""What the plan counts is generous: an engine may take half of it, and hardly less."""


@check("spec.engine.resources.limits.memory")
def memory_request(parts: CheckInput) -> CheckResult:
    """What the resource gives vLLM's processes takes the place of what the plan would count for them."""
    given = given_memory(parts.spec.engine)
    if given is None or parts.observed.machine is not None:
        return memory_request.passed("the plan counts the engine's memory")
    counted_bytes = sum(line.bytes for line in computed_memory(parts.spec, parts.geometry, 0))
    if given.bytes * _LEAST_SHARE >= counted_bytes:
        return memory_request.passed(f"{size(given.bytes)} for vLLM's processes, tiers apart")
    return memory_request.warn(
        "MemoryLow",
        f"{size(given.bytes)} for vLLM's own processes, to which the plan adds the tiers; it would count "
        f"{size(counted_bytes)}: the kernel kills an engine whose memory is used up; leave it out, or set "
        "what you have seen an engine take without a tier",
        by_itself="takes it as it is",
        field=f"spec.engine.{given.field}",
    )
