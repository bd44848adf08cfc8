"""What the doctor checks in the engine's pod before vLLM starts."""

from kvtier_operator.api.resource import Spec
from kvtier_operator.api.spec.tiers import Ability
from kvtier_operator.api.spec.tiers.cpu import Policy
from kvtier_operator.planning.backends import traits_of
from kvtier_operator.planning.backends.parts import preferred_pages
from kvtier_operator.planning.base.container_parts import EnginePlan
from kvtier_operator.planning.base.remote_store import ca_path, credentials_path
from kvtier_operator.planning.base.tier_plan import TiersPlan
from kvtier_operator.planning.observed import Observed
from kvtier_operator.planning.pod.budget import Budget
from kvtier_operator.planning.pod.demands import (
    Demands,
    DoctorPlan,
    HugepagesDemand,
    MemlockDemand,
    RemoteDemand,
    VolumeDemand,
)
from kvtier_operator.planning.units import ceil_div


def plan_doctor(
    spec: Spec, tiers: TiersPlan, budget: Budget, engine: EnginePlan, observed: Observed
) -> DoctorPlan:
    """The doctor's image, and what the pod must find."""
    hugepages = _hugepages(spec, tiers)
    return DoctorPlan(
        image=observed.images.doctor(),
        demands=Demands(
            memory_bytes=sum(line.bytes for line in budget.memory),
            shm_bytes=budget.shm_bytes,
            hugepages=hugepages,
            memlock=_memlock(spec, hugepages),
            volumes=_volumes(spec, engine),
            ordinary_tier_bytes=_ordinary_bytes(spec, hugepages),
            remote=_remote(spec),
        ),
    )


def _hugepages(spec: Spec, tiers: TiersPlan) -> HugepagesDemand | None:
    cpu, tier = spec.tiers.cpu, tiers.cpu
    if cpu.hugepages.policy is Policy.NEVER:
        return None
    if tier.hugepages is not None:
        return HugepagesDemand(tier.hugepages.page_bytes, tier.hugepages.pages, required=True)
    if not traits_of(spec.backend).cpu.falls_back:
        return None
    ranks = spec.engine.ranks
    pages = preferred_pages(cpu, tier.bytes_per_rank, ranks)
    return HugepagesDemand(pages.page_bytes, pages.pages, required=False)


def _memlock(spec: Spec, hugepages: HugepagesDemand | None) -> MemlockDemand | None:
    """What `Require` needs: `Prefer` takes what there is, and the engine says how much that was.

    Some backends lock their tier by themselves: see the check `memlock`.
    """
    cpu = spec.tiers.cpu
    if cpu.memlock.policy is not Policy.REQUIRE or Ability.TELLS_OF_TIERS not in spec.backend.abilities:
        return None
    on_hugepages = hugepages is not None and hugepages.required
    return MemlockDemand(
        bytes=0 if on_hugepages else cpu.capacity.bytes // spec.engine.data_parallel_size,
        required=True,
    )


def _ordinary_bytes(spec: Spec, hugepages: HugepagesDemand | None) -> int:
    """What huge pages could hold: the other backends decide on their memory themselves."""
    return 0 if hugepages or not traits_of(spec.backend).cpu.falls_back else spec.tiers.cpu.capacity.bytes


def _volumes(spec: Spec, engine: EnginePlan) -> tuple[VolumeDemand, ...]:
    disk = spec.tiers.disk
    if disk is None or not engine.mounts:
        return ()
    share = ceil_div(disk.capacity.bytes, len(engine.mounts))
    direct = disk.direct_io and traits_of(spec.backend).disk.direct_io
    return tuple(VolumeDemand(mount.mount_path, share, direct) for mount in engine.mounts)


def _remote(spec: Spec) -> RemoteDemand | None:
    remote, traits = spec.tiers.remote, traits_of(spec.backend).remote
    if remote is None or remote.url is None or not traits.own_client or remote.scheme not in traits.schemes:
        return None
    return RemoteDemand(
        managed=remote.managed is not None,
        url=remote.url,
        share=remote.share_as or "",
        capacity_bytes=remote.capacity.bytes,
        credentials_path=credentials_path(remote),
        ca_path=ca_path(remote),
    )
