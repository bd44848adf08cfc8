"""`spec.engine.gpu`: the GPUs that a plan knows by name, one a line.

Memory is what the driver says is there (torch.cuda.mem_get_info, as public logs of each have it; of several the
least, of A30 and MI325X in proportion), which is less than a data sheet's. The other figures are the makers' data
sheets', without sparsity and each way for links: ceilings, from which a plan takes what is usually reached of
them. What an engine reports, and what `kvtier bench` measures, replaces both.
"""

from enum import StrEnum
from typing import Final, Self

_GIB: Final = 1024**3
SMALL_PAGE_BYTES: Final = 4 << 10
"""A kernel's ordinary pages, but for some of arm64."""
LARGE_PAGE_BYTES: Final = 64 << 10
"""Of the kernels that NVIDIA has for Grace."""


class Architecture(StrEnum):
    """NVIDIA GPUs by the major number of their compute capability, each with a well-known example."""

    AMPERE = "Ampere, Ada (A100, L40S)"
    HOPPER = "Hopper (H100, H200)"
    BLACKWELL = "Blackwell (B200)"
    BLACKWELL_WORKSTATION = "RTX Blackwell"


class Gpu(StrEnum):
    """A GPU: memory in GiB and in TB/s, the link to the host in GB/s each way, dense bf16 in TFLOP/s."""

    architecture: Architecture | None  # None of AMD's
    memory_bytes: int
    memory_bytes_per_s: float
    link_bytes_per_s: float  # to the host's memory, each way
    flops: float  # floating-point operations a second, bf16 without sparsity
    node_gpus: int  # most that a usual node has
    on_grace: bool  # whether the host is NVIDIA Grace: arm64, with a kernel of large pages

    # NVIDIA's data sheets: H100, H100 NVL, H200, GH200, A100, A10, A30, L4, L40S, RTX PRO 6000 Blackwell Server Edition,
    # HGX B200 and B300 (a GPU's part), GB200 and GB300 NVL72 (a GPU's part; two GPUs share the NVLink-C2C of a Grace).
    # H20: as its vendors list it. A10G: AWS, EC2 G5, and its NVIDIA card's specification.
    H100 = "h100", Architecture.HOPPER, 79.1, 3.35, 64, 989
    H100_NVL = "h100-nvl", Architecture.HOPPER, 93.0, 3.9, 64, 835
    H20 = "h20", Architecture.HOPPER, 95.0, 4.0, 64, 148
    H200 = "h200", Architecture.HOPPER, 139.7, 4.8, 64, 989
    GH200 = "gh200", Architecture.HOPPER, 94.5, 4.0, 450, 990, 4, True
    B200 = "b200", Architecture.BLACKWELL, 178.3, 7.7, 64, 2250
    B300 = "b300", Architecture.BLACKWELL, 267.6, 8.0, 128, 2250
    GB200 = "gb200", Architecture.BLACKWELL, 184.3, 8.0, 225, 2500, 4, True
    GB300 = "gb300", Architecture.BLACKWELL, 276.5, 8.0, 225, 2500, 4, True
    RTX_PRO_6000 = "rtx-pro-6000", Architecture.BLACKWELL_WORKSTATION, 94.9, 1.6, 64, 504
    A100_40 = "a100-40", Architecture.AMPERE, 39.3, 1.55, 32, 312, 16
    A100_80 = "a100-80", Architecture.AMPERE, 79.1, 2.0, 32, 312
    A10 = "a10", Architecture.AMPERE, 21.9, 0.6, 32, 125
    A10G = "a10g", Architecture.AMPERE, 21.9, 0.6, 32, 70
    A30 = "a30", Architecture.AMPERE, 23.4, 0.93, 32, 165
    L4 = "l4", Architecture.AMPERE, 21.9, 0.3, 32, 121
    L40S = "l40s", Architecture.AMPERE, 44.3, 0.86, 32, 362
    # AMD Instinct's data sheets.
    MI300X = "mi300x", None, 191.6, 5.3, 64, 1307
    MI325X = "mi325x", None, 255.6, 6.0, 64, 1307
    MI355X = "mi355x", None, 287.9, 8.0, 64, 2516

    def __new__(  # noqa: PLR0913, PLR0917 - the columns of the table
        cls,
        value: str,
        architecture: Architecture | None,
        memory_gib: float,
        memory_tb_per_s: float,
        link_gb_per_s: float,
        tflops: float,
        node_gpus: int = 8,
        on_grace: bool = False,
    ) -> Self:
        """The member of a name, with what it is."""
        member = str.__new__(cls, value)
        member._value_ = value
        member.architecture = architecture
        member.memory_bytes = int(memory_gib * _GIB)
        member.memory_bytes_per_s = memory_tb_per_s * 1e12
        member.link_bytes_per_s = link_gb_per_s * 1e9
        member.flops = tflops * 1e12
        member.node_gpus = node_gpus
        member.on_grace = on_grace
        return member

    @property
    def resource(self) -> str:
        """What its maker's device plugin calls it in a pod's requests."""
        return "nvidia.com/gpu" if self.architecture else "amd.com/gpu"


USUAL_NODE_GPUS: Final = 8
"""Most that a usual node has of a GPU that is not named."""
LARGEST: Final = max(Gpu, key=lambda gpu: gpu.memory_bytes)
"""The most memory that one GPU has."""
