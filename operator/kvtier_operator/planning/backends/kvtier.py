"""Backend KVTier: kvtier's own connector."""

from kvtier_connector.config import ConnectorConfig, Policy, kv_transfer_config
from kvtier_operator.api.resource import Spec
from kvtier_operator.api.tiers import HugepageSize
from kvtier_operator.api.tiers import Policy as ApiPolicy
from kvtier_operator.planning.backends.share import Share, round_up
from kvtier_operator.planning.backends.transfer import transfer_args
from kvtier_operator.planning.geometry import Geometry
from kvtier_operator.planning.plan import BackendPlan, HugepagesPlan


def plan_kvtier(spec: Spec, geometry: Geometry) -> BackendPlan:
    """One region an engine, shared by its ranks; the settings are `kvtier_connector.config`'s."""
    del geometry
    share = Share.of(spec)
    cpu = spec.tiers.cpu
    if cpu is None:
        return BackendPlan(notes=("backend KVTier does not serve tiers.disk in this release",))
    page = (cpu.hugepages.page_size or HugepageSize.TWO_MIB).bytes
    wants_pages = cpu.hugepages.policy is not ApiPolicy.OFF
    per_rank = share.cpu_bytes // share.ranks_per_engine
    hugepages = None
    if wants_pages:
        per_rank = round_up(per_rank, page)
        hugepages = HugepagesPlan(page_bytes=page, pages=per_rank * share.ranks // page)
    config = ConnectorConfig(
        cpu_capacity_bytes=per_rank * share.ranks_per_engine,
        hugepages=Policy(cpu.hugepages.policy),
        hugepage_bytes=page,
        memlock=Policy(cpu.memlock.policy),
    )
    notes: tuple[str, ...] = ()
    if spec.tiers.disk is not None:
        notes = ("backend KVTier does not serve tiers.disk in this release",)
    return BackendPlan(
        args=transfer_args(kv_transfer_config(config)),
        pinned_bytes=0 if hugepages else per_rank * share.ranks,
        cpu_bytes_per_rank=per_rank,
        hugepages=hugepages,
        notes=notes,
    )
