"""The devices that an engine's pod asks for: what the resource names, or one GPU a rank."""

import re
from typing import Final

from kvtier_operator.api.resource import Spec
from kvtier_operator.api.spec.engine import Device

_GPU: Final = "nvidia.com/gpu"
_KUBERNETES_OWN: Final = "kubernetes.io/"
_WORD: Final = re.compile(r"[a-z0-9]+")
_OF_A_NETWORK: Final = ("rdma", "efa", "sriov", "roce", "infiniband", "hostdev", "nic")
"""How the words begin by which device plugins call network adapters: rdma/hca_shared_devices_a,
vpc.amazonaws.com/efa, intel.com/intel_sriov_netdevice, nvidia.com/hostdev."""

_AMD: Final = "amd.com"
_INTEL: Final = "gpu.intel.com"
_OTHER_MAKERS: Final = frozenset(
    {_AMD, _INTEL, "habana.ai", "google.com", "aws.amazon.com", "huawei.com", "cambricon.com", "enflame.com"}
    | {"mthreads.com", "tenstorrent.com", "qualcomm.com", "furiosa.ai", "rebellions.ai"}
)
"""Domains of device plugins whose devices run no CUDA; that of an unknown one may share NVIDIA's."""


def is_device(resource: str) -> bool:
    """Whether a resource of a pod is a device plugin's.

    Source: Kubernetes, pkg/apis/core/v1/helper, IsExtendedResourceName.
    """
    return "/" in resource and _KUBERNETES_OWN not in resource


def is_accelerator(resource: str) -> bool:
    """Whether vLLM may compute on it: any device but a network adapter, also a MIG slice."""
    return is_device(resource) and not is_of_a_network(resource)


def is_part_of_a_gpu(resource: str) -> bool:
    """Whether a device plugin shares GPUs out by this name: MIG slices, and replicas (gpu.shared)."""
    kind = resource.rpartition("/")[2]
    return kind.startswith("mig-") or kind.endswith(".shared")


def is_of_a_network(name: str) -> bool:
    """Whether a device or a claim is called after a network."""
    return any(word.startswith(_OF_A_NETWORK) for word in _WORD.findall(name.lower()))


def named_devices(spec: Spec) -> dict[str, str]:
    """Devices that the resource names itself; the limit, where it has both."""
    own = {**spec.engine.resources.requests, **spec.engine.resources.limits}
    return {name: str(count) for name, count in own.items() if is_device(name)}


def without_cuda(spec: Spec) -> tuple[str, ...]:
    """Devices of the pod that run no CUDA."""
    return tuple(
        name for name in engine_devices(spec) if is_accelerator(name) and _domain(name) in _OTHER_MAKERS
    )


def of_another_maker(spec: Spec) -> tuple[str, ...]:
    """Devices that the resource names and that cannot be the GPU it names: who is not known may share one."""
    own = _domain(spec.engine.gpu.resource) if spec.engine.gpu else ""
    others = (_OTHER_MAKERS | {_domain(_GPU)}) - {own}
    named = filter(is_accelerator, named_devices(spec) if own else ())
    return tuple(name for name in named if _domain(name) in others)


def not_tested(spec: Spec) -> tuple[str, ...]:
    """Of them, those for which neither kvtier nor what it stands on is made: AMD's are GPUs like NVIDIA's."""
    return tuple(name for name in without_cuda(spec) if _domain(name) != _AMD)


def is_xpu(resource: str) -> bool:
    """Whether it is an Intel GPU, which vLLM calls XPU."""
    return _domain(resource) == _INTEL


def _domain(resource: str) -> str:
    return resource.partition("/")[0]


def engine_devices(spec: Spec) -> dict[str, str]:
    """Devices of one pod. Kubernetes takes the same number as request and limit only.

    Whoever names what vLLM is to compute on, as a resource or by a claim, gets exactly that.
    """
    named = named_devices(spec)
    chosen = bool(spec.engine.resource_claims) or any(map(is_accelerator, named))
    if chosen or spec.engine.device is not Device.GPU:
        return named
    gpu = spec.engine.gpu.resource if spec.engine.gpu else _GPU
    return {**named, gpu: str(spec.engine.ranks)}
