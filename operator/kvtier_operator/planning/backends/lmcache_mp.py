"""Backend LMCacheMP: LMCache as a server beside the engine."""

from kvtier_operator.api.resource import Spec
from kvtier_operator.planning.backends.disk import disk_mounts
from kvtier_operator.planning.backends.share import Share
from kvtier_operator.planning.backends.transfer import transfer_args
from kvtier_operator.planning.geometry import Geometry
from kvtier_operator.planning.plan import BackendPlan


def plan_lmcache_mp(spec: Spec, geometry: Geometry) -> BackendPlan:
    """The tier lives in the server; the engine's processes only hold handles to it."""
    del geometry
    share = Share.of(spec)
    return BackendPlan(
        args=transfer_args({"kv_connector": "LMCacheMPConnector", "kv_role": "kv_both"}),
        mounts=disk_mounts(spec.tiers.disk),
        cpu_bytes_per_rank=share.cpu_bytes // share.ranks_per_engine,
        disk_bytes_per_rank=share.disk_bytes // share.ranks_per_engine,
    )
