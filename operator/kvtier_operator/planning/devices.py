"""The devices that an engine's pod asks for: what the resource names, or one NVIDIA GPU a rank."""

import re
from typing import Final

from kvtier_operator.api.engine import Device
from kvtier_operator.api.resource import Spec

GPU: Final = "nvidia.com/gpu"
_KUBERNETES_OWN: Final = "kubernetes.io/"
_WORD: Final = re.compile(r"[a-z0-9]+")
_OF_A_NETWORK: Final = ("rdma", "efa", "sriov", "roce", "infiniband", "hostdev", "nic")
"""How the words begin by which device plugins call network adapters: rdma/hca_shared_devices_a,
vpc.amazonaws.com/efa, intel.com/intel_sriov_netdevice, nvidia.com/hostdev."""


def is_device(resource: str) -> bool:
    """Whether a resource of a pod is a device plugin's.

    Source: Kubernetes, pkg/apis/core/v1/helper, IsExtendedResourceName.
    """
    return "/" in resource and _KUBERNETES_OWN not in resource


def is_accelerator(resource: str) -> bool:
    """Whether vLLM may compute on it: any device but a network adapter, also a MIG slice."""
    return is_device(resource) and not is_of_a_network(resource)


def is_of_a_network(name: str) -> bool:
    """Whether a device or a claim is called after a network."""
    return any(word.startswith(_OF_A_NETWORK) for word in _WORD.findall(name.lower()))


def named_devices(spec: Spec) -> dict[str, str]:
    """Devices that the resource names itself; the limit, where it has both."""
    own = {**spec.engine.resources.requests, **spec.engine.resources.limits}
    return {name: str(count) for name, count in own.items() if is_device(name)}


def engine_devices(spec: Spec) -> dict[str, str]:
    """Devices of one pod. Kubernetes takes the same number as request and limit only.

    Whoever names what vLLM is to compute on, as a resource or by a claim, gets exactly that.
    """
    named = named_devices(spec)
    chosen = bool(spec.engine.resource_claims) or any(map(is_accelerator, named))
    if chosen or spec.engine.device is not Device.CUDA:
        return named
    return {**named, GPU: str(spec.engine.tensor_parallel_size * spec.engine.data_parallel_size)}
