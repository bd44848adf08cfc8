"""What pods that a resource selects are given: settings, memory, huge pages and a disk.

Of their engines neither the model is known, unless `spec.model` names it, nor how many ranks share a tier.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from kvtier_common.tier import Tier
from kvtier_connector.config import (
    KEY_BYTES,
    ConnectorConfig,
    disk_beside_bytes,
    disk_slots,
    kv_transfer_config,
)
from kvtier_connector.config import Policy as ConnectorPolicy
from kvtier_operator.api.resource import KVCacheTier, Spec
from kvtier_operator.api.spec.attach import AttachSpec
from kvtier_operator.api.spec.tiers.cpu import Policy
from kvtier_operator.planning.backends import plan_backend
from kvtier_operator.planning.backends.kvtier import (
    DISK_INDEX_BYTES_PER_CHUNK,
    INDEX_BYTES_PER_CHUNK,
    disk_settings,
    remote_settings,
)
from kvtier_operator.planning.backends.parts import disk_mounts, page_bytes, volume_bytes
from kvtier_operator.planning.base.container_parts import Mount
from kvtier_operator.planning.base.kept import ATTACHED_CONTROL_FOLDER, kept_settings
from kvtier_operator.planning.base.tier_plan import TiersPlan
from kvtier_operator.planning.kv_cache.cost import resolve_geometry
from kvtier_operator.planning.model_shape.geometry import Geometry
from kvtier_operator.planning.observed import Observed
from kvtier_operator.planning.pod.budget import HEADROOM_DIVISOR
from kvtier_operator.planning.pod.engine_memory import BudgetLine
from kvtier_operator.planning.tiers import serve_tiers
from kvtier_operator.planning.tiers.capacity import plan_tiers
from kvtier_operator.planning.units import GIB, KIB, MIB, ceil_div, quantity, round_up, size

_OF_THE_PLUG_IN: Final = ("spec_name", "spec_module_path")
_LEAST_CHUNK_BYTES: Final = 64 * KIB
"""Of a model that is not known: 64 tokens of 1 KiB; one of half a billion parameters has 12."""
_LEAST_CHUNK_TOKENS: Final = 16
"""vLLM's usual block, the least that the connector keeps together."""
_DTYPE_DIVISOR: Final = 4
"""An engine may keep 4 bits in place of bf16's 16, which its owner chooses."""
_MOST_RANKS: Final = 8
"""That share pages of one pod evenly, where there are 1, 2, 4 or 8 of them."""


@dataclass(frozen=True, slots=True)
class AttachPlan:
    """What each pod that a resource selects is given."""

    name: str  # the KVCacheTier's
    namespace: str  # its and the pods'
    model: str  # that it names; empty where it names none
    attach: AttachSpec  # which pods
    capacity_bytes: Mapping[Tier, int]  # what is asked for of each tier
    # what each tier holds of an engine of one rank in the model's own dtype; empty where no model is named
    tokens: Mapping[Tier, int]
    settings: str  # variable KVTIER_ATTACH: ConnectorConfig as JSON, capacities of the whole pod
    memory: tuple[BudgetLine, ...]  # what is added to the container's memory, line by line
    hugepages: Mapping[str, str]  # quantities of explicit huge pages by resource; empty unless required
    disk: Mount | None  # the disk tier's volume, which goes with the pod; None without one

    @property
    def memory_bytes(self) -> int:
        """What is added to the container's memory."""
        return sum(line.bytes for line in self.memory)

    @property
    def disk_bytes(self) -> int:
        """Size of the disk tier's volume; 0 without one."""
        return volume_bytes(self.disk.payload_bytes) if self.disk else 0

    @property
    def node_disk_bytes(self) -> int:
        """The same where it is the node's own disk, which counts as the container's ephemeral storage."""
        return self.disk_bytes if self.disk and "emptyDir" in self.disk.source else 0

    @property
    def status(self) -> dict[str, Any]:
        """As `status.attach` has it while the plan is published."""
        return {
            "settings": self.settings,
            "memory": quantity(self.memory_bytes),
            **({"hugepages": dict(self.hugepages)} if self.hugepages else {}),
            **({"ephemeralStorage": quantity(self.disk_bytes)} if self.disk else {}),
        }


def plan_attach(resource: KVCacheTier, observed: Observed) -> AttachPlan:
    """Work out what the pods that a resource selects are given.

    Args:
        resource: One with `spec.attach`.
        observed: Where its model's configuration is, if it names a model.

    Raises:
        InvalidInputError: The KV geometry of the model that it names cannot be had; without one there is none
            to be had.
    """
    spec = resource.planned_spec
    if spec.attach is None:
        raise ValueError("the resource has no spec.attach")
    cpu, disk = spec.tiers.cpu, next(iter(disk_mounts(spec.tiers.disk)), None)
    geometry = resolve_geometry(spec, observed) if spec.served_model else None
    required = cpu.hugepages.policy is Policy.REQUIRE
    page = page_bytes(cpu)
    # whole pages for each rank: what does not fit would be ordinary memory that nobody asked for
    cpu_bytes = round_up(cpu.capacity.bytes, page * _MOST_RANKS) if required else cpu.capacity.bytes
    config = ConnectorConfig(
        cpu_capacity_bytes=cpu_bytes,
        hugepages=ConnectorPolicy(cpu.hugepages.policy),
        hugepage_bytes=page,
        memlock=ConnectorPolicy(cpu.memlock.policy),
        layered_loads=cpu.layered_loads is not False,
        **disk_settings(spec, [disk] if disk else []),
        **remote_settings(spec),
        **kept_settings(spec, ATTACHED_CONTROL_FOLDER),
    )
    return AttachPlan(
        name=resource.metadata.name,
        namespace=resource.metadata.namespace,
        model=spec.served_model.name if spec.served_model else "",
        attach=spec.attach,
        capacity_bytes={tier: wanted.capacity.bytes for tier, wanted in spec.tiers.by_tier().items()},
        tokens=_tokens(spec, geometry) if geometry else {},
        settings=_settings(config),
        memory=(*_memory(spec, 0 if required else cpu_bytes, _least_chunk_bytes(geometry)),),
        hugepages={f"hugepages-{quantity(page)}": quantity(cpu_bytes)} if required else {},
        disk=disk,
    )


def attached_tiers(spec: Spec, geometry: Geometry) -> TiersPlan:
    """The tiers of an engine of one rank in the model's own dtype, which its owner may have otherwise."""
    return plan_tiers(spec, geometry, serve_tiers(spec, geometry, plan_backend(spec, geometry)))


def settings_digest(settings: str) -> str:
    """Digest of KVTIER_ATTACH, by which it is known which plan a pod was made with."""
    return hashlib.sha256(settings.encode()).hexdigest()[:16]


def _settings(config: ConnectorConfig) -> str:
    """Those that differ from their defaults, without what the plug-in chooses by the engine."""
    wanted = kv_transfer_config(config)["kv_connector_extra_config"]
    own = {name: value for name, value in wanted.items() if name not in _OF_THE_PLUG_IN}
    return json.dumps(own, separators=(",", ":"))


def _memory(spec: Spec, tier_bytes: int, chunk_bytes: int) -> Iterator[BudgetLine]:
    """The tier, and at most what goes with it."""
    if tier_bytes:
        yield BudgetLine("CPU tier", tier_bytes, "spec.tiers.cpu.capacity")
    chunks = f"chunks of at least {size(chunk_bytes)}"
    entries = spec.tiers.cpu.capacity.bytes // chunk_bytes
    beside = [
        BudgetLine(
            "index of the CPU tier",
            entries * INDEX_BYTES_PER_CHUNK,
            f"{entries:,} {chunks}, {INDEX_BYTES_PER_CHUNK} B for each",
        )
    ]
    if spec.tiers.disk:
        slots = disk_slots(spec.tiers.disk.capacity.bytes, chunk_bytes, KEY_BYTES)
        slot_bytes = chunk_bytes + disk_beside_bytes(chunk_bytes, KEY_BYTES)
        why = f"{slots:,} slots of at least {size(slot_bytes)}, {DISK_INDEX_BYTES_PER_CHUNK} B for each"
        beside.append(BudgetLine("index of the disk tier", slots * DISK_INDEX_BYTES_PER_CHUNK, why))
    yield from (line for line in beside if line.bytes)
    indexes = sum(line.bytes for line in beside)
    without = tier_bytes + indexes
    headroom = round_up(without + max(GIB, ceil_div(indexes, HEADROOM_DIVISOR)), MIB) - without
    yield BudgetLine("headroom", headroom, "a tenth of the indexes, at least 1 GiB, to a whole MiB")


def _least_chunk_bytes(geometry: Geometry | None) -> int:
    """What the connector keeps together, at least: of the model that is named, or of any."""
    if geometry is None:
        return _LEAST_CHUNK_BYTES
    groups = max(len(geometry.group_block_tokens), 1)  # each has chunks of its own
    return max(geometry.kv_bytes_per_token * _LEAST_CHUNK_TOKENS // (_DTYPE_DIVISOR * groups), 1)


def _tokens(spec: Spec, geometry: Geometry) -> Mapping[Tier, int]:
    return {tier: planned.tokens for tier, planned in attached_tiers(spec, geometry).by_tier.items()}
