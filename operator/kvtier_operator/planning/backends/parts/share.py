"""How the tiers of one pod are shared out over its engines and their ranks."""

from dataclasses import dataclass
from decimal import Decimal
from typing import Self

from kvtier_operator.api.resource import Spec
from kvtier_operator.planning.model_shape.geometry import Geometry
from kvtier_operator.planning.units import GIB, ceil_div


@dataclass(frozen=True, slots=True)
class Share:
    """Engines and ranks of one pod, and what each engine gets of a tier.

    A pod runs `dataParallelSize` engines of `tensorParallelSize` ranks. Each engine keeps a cache of its
    own, so a tier's capacity, which is the pod's, is divided by the engines first.

    Attributes:
        engines: Engines in the pod.
        ranks_per_engine: Ranks that share each layer.
        cpu_bytes: CPU tier of one engine.
        disk_bytes: Disk tier of one engine; 0 without one.
    """

    engines: int
    ranks_per_engine: int
    cpu_bytes: int
    disk_bytes: int

    @classmethod
    def of(cls, spec: Spec) -> Self:
        """The shares that `spec` asks for."""
        engines = spec.engine.data_parallel_size
        cpu, disk = spec.tiers.cpu, spec.tiers.disk
        return cls(
            engines=engines,
            ranks_per_engine=spec.engine.tensor_parallel_size,
            cpu_bytes=cpu.capacity.bytes // engines,
            disk_bytes=disk.capacity.bytes // engines if disk else 0,
        )

    @property
    def ranks(self) -> int:
        """Ranks in the pod."""
        return self.engines * self.ranks_per_engine


def round_down(size: int, step: int) -> int:
    """The largest multiple of `step` that is not above `size`, but at least one `step`."""
    return max(size // step, 1) * step


def gib(size: int) -> float:
    """`size` in GiB. Exact for whole MiB: the quotient is a fraction of few bits."""
    return size / GIB


def gib_text(size: int) -> str:
    """`size`, whole MiB, in GiB as a plain decimal number with a point: never `4Gi`, never `1e-03`."""
    text = format(Decimal(size) / GIB, "f")
    return text if "." in text else f"{text}.0"


def index_bytes_per_rank(
    geometry: Geometry, share: Share, tokens_per_entry: int, bytes_per_entry: int
) -> int:
    """Memory of the scheduler's index of the CPU tier, spread over the ranks of its engine.

    One engine's scheduler keeps one entry for each chunk of `tokens_per_entry` tokens.
    """
    entries = share.cpu_bytes // (tokens_per_entry * geometry.kv_bytes_per_token)
    return ceil_div(entries * bytes_per_entry, share.ranks_per_engine)
