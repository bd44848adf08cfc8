"""`spec.tiers.disk`: local disk below the CPU tier."""

from typing import Final

from pydantic import Field

from kvtier_operator.api.quantity import ByteBound, ByteQuantity
from kvtier_operator.api.spec.kept import Retained
from kvtier_operator.api.spec.pod import Volume
from kvtier_operator.api.spec.tiers import Ability, TierFields, TierSpec, ability_rule, backends_with, one_of


class DiskTierSpec(TierSpec):
    """Local disk."""

    capacity: ByteQuantity = Field(
        description="Disk space for the prefix cache, per engine pod, all ranks and volumes together: a hard bound.",
    )
    volume: Volume = Field(description="Where this tier lives.")
    extra_volumes: list[Volume] = Field(
        default_factory=list,
        description=f"Further volumes of the same tier, one a disk; the capacity is split evenly. Only backend {one_of(backends_with(Ability.SPREADS_DISK))} spreads over several.",
        max_length=16,
        json_schema_extra={"x-kubernetes-list-type": "atomic"},
    )
    direct_io: bool = Field(
        default=True,
        alias="directIO",
        description="Bypass the page cache (O_DIRECT), where backend and filesystem can.",
    )
    bandwidth: ByteQuantity | None = Field(
        None,
        description="Bytes a second that one engine pod reads from this tier, all ranks and volumes together, such as 6G. The plan says whether reading pays at it, and at 2 GB/s when empty; engines measure their own.",
    )
    writes_per_hour: ByteBound | None = Field(
        None,
        description=f"Bound on what is written within an hour, per engine pod, all ranks together, for the drive's wear; none when empty. What it keeps out stays in memory alone. Only backend {one_of(backends_with(Ability.BOUNDS_WRITES))} has one.",
    )
    retained: Retained | None = Field(
        None, description="How much of it requests and prefixes may retain; 30% when empty."
    )


FIELDS: Final = TierFields(
    title="disk",
    status="Local disk.",
    tells=("pays",),
    weight=0,
    spec=(DiskTierSpec | None, Field(None, description="Local disk, below the CPU tier.")),
    rules=(
        ability_rule(
            Ability.SPREADS_DISK,
            "disk.extraVolumes",
            "spreads a disk tier over several volumes",
            "self.tiers.disk.extraVolumes.size() == 0",
        ),
        ability_rule(Ability.BOUNDS_WRITES, "disk.writesPerHour", "bounds what is written to a disk tier"),
        ability_rule(Ability.KEEPS, "disk.retained", "retains what requests ask for"),
    ),
)
