"""`spec.tiers.cpu`: memory for the prefix cache, its pages, and whether it is locked."""

from enum import StrEnum
from typing import Annotated, Final

from pydantic import Field

from kvtier_operator.api import former
from kvtier_operator.api.base import ApiModel, rule
from kvtier_operator.api.quantity import ByteQuantity, parse_bytes
from kvtier_operator.api.spec.gpu import LARGE_PAGE_BYTES, SMALL_PAGE_BYTES
from kvtier_operator.api.spec.kept import Retained
from kvtier_operator.api.spec.tiers import Ability, TierFields, TierSpec, ability_rule


class Policy(StrEnum):
    """How much a property of memory matters."""

    REQUIRE = "Require"
    PREFER = "Prefer"
    NEVER = former.NEVER


PolicyField = Annotated[
    Policy, former.read_as_now(*former.OFF), Field(json_schema_extra=former.schema_of(*former.OFF))
]
"""A policy as a resource has it, which may be by its former word."""


class HugepageSize(StrEnum):
    """Sizes of explicit huge pages (Linux, Documentation/arch/arm64/hugetlbpage.rst)."""

    TWO_MIB = "2Mi"  # of every kernel
    ONE_GIB = "1Gi"  # of x86-64, and of arm64 with pages of 4 KiB
    HALF_GIB = "512Mi"  # of arm64 with pages of 64 KiB, as on GB200
    SIXTEEN_GIB = "16Gi"  # the same

    @property
    def bytes(self) -> int:
        """Size of one page in bytes."""
        return parse_bytes(self.value)

    @property
    def needs_page_bytes(self) -> int | None:
        """Size of the ordinary pages of the kernels that have it; None where all have it."""
        if self is HugepageSize.TWO_MIB:
            return None
        return SMALL_PAGE_BYTES if self is HugepageSize.ONE_GIB else LARGE_PAGE_BYTES


class Hugepages(ApiModel):
    """Explicit huge pages under the CPU tier."""

    policy: PolicyField = Field(
        Policy.NEVER,
        description="Require refuses to run without; Prefer falls back to transparent huge pages, then 4 KiB; Never, the default, uses 4 KiB pages.",
    )
    page_size: HugepageSize | None = Field(
        None,
        description="Size of one page; 2Mi when a policy is set and this is empty. Kernels with ordinary pages of 4 KiB have 2Mi and 1Gi, those with 64 KiB (arm64, as on GB200 and GH200) 2Mi, 512Mi and 16Gi.",
    )

    @rule(
        "!has(self.pageSize) || !(self.policy in ['Never', 'Off'])",
        "pageSize needs a policy: set hugepages.policy to Require or Prefer",
        field=".pageSize",
    )
    def page_size_has_policy(self) -> bool:
        """A page size that nothing uses was meant otherwise."""
        return self.page_size is None or self.policy is not Policy.NEVER


class Memlock(ApiModel):
    """Locking the CPU tier in memory: by the driver for DMA on CUDA, by mlock(2) on a CPU."""

    policy: PolicyField = Field(
        Policy.PREFER,
        description="Require refuses to start where the memory cannot be locked, and runs as root with IPC_LOCK; Prefer, the default, locks what it may without rights and says what it got; Never locks nothing: copies from and to a GPU are then slower.",
    )


class CpuTierSpec(TierSpec):
    """CPU memory."""

    capacity: ByteQuantity = Field(
        description="Memory for the prefix cache, per engine pod, all ranks together.",
    )
    expected_prefix_tokens: int | None = Field(
        None,
        description="Tokens of a prefix that the workload comes back to. Only for models with sliding-window or linear-attention layers, which keep a window or a state for each prefix beside its tokens: the shorter the prefixes, the fewer tokens the tiers hold, and the picker counts on. The longest sequence when empty.",
        ge=1,
        le=2**31 - 1,
    )
    hugepages: Hugepages = Field(
        default_factory=Hugepages, description="Explicit huge pages under this tier."
    )
    memlock: Memlock = Field(default_factory=Memlock, description="Locking this tier in memory.")
    layered_loads: bool | None = Field(
        None,
        description="On a GPU, whether a step computes with the first layers of what it loads from this tier while the others are copied; false loads first and computes in a later step. True when empty.",
    )
    retained: Retained | None = Field(
        None, description="How much of it requests and prefixes may retain; 30% when empty."
    )


FIELDS: Final = TierFields(
    title="CPU",
    status="CPU memory.",
    tells=("pinned_bytes",),
    weight=1,
    spec=(
        CpuTierSpec,
        Field(
            description="CPU memory; give at least its capacity. Blocks pass through it on their way to the disk and back."
        ),
    ),
    rules=(
        ability_rule(Ability.KEEPS, "cpu.retained", "retains what requests ask for"),
        ability_rule(Ability.LAYERS_LOADS, "cpu.layeredLoads", "has layers wait for their part of a load"),
    ),
)
