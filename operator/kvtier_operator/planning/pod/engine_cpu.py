"""CPU that an engine's pod requests where its resource names none, line by line."""

from dataclasses import dataclass
from typing import Final

from kvtier_operator.api.resource import Spec
from kvtier_operator.api.spec.engine import Device, EngineSpec
from kvtier_operator.planning.base.node import CPU
from kvtier_operator.planning.model_shape.geometry import Geometry
from kvtier_operator.planning.pod.engine_memory import api_servers
from kvtier_operator.planning.tiers.store_demand import client_millicores
from kvtier_operator.planning.units import many

_CORE: Final = 1000


@dataclass(frozen=True, slots=True)
class CpuLine:
    """What asks for a part of it."""

    what: str
    millicores: int


def engine_cpu(spec: Spec, geometry: Geometry) -> tuple[CpuLine, ...]:
    """The lines; none where the resource has a request or a limit of its own, which stands.

    A GPU's engine has a core for each of its processes, as vLLM asks for
    (docs/configuration/optimization.md, CPU resources for GPU deployments): front end, scheduler and ranks
    poll, and a rank that waits for its core leaves the GPU idle. How many cores an engine on device cpu
    computes on is its author's to say.
    """
    engine = spec.engine
    if CPU in {**engine.resources.requests, **engine.resources.limits}:
        return ()
    processes: tuple[tuple[str, int], ...] = ()
    if engine.device is Device.GPU:
        processes = _processes(engine)
    lines = (
        *(CpuLine(what, number * _CORE) for what, number in processes),
        CpuLine("the remote tier's client", client_millicores(spec, geometry)),
    )
    return tuple(line for line in lines if line.millicores)


def process_count(engine: EngineSpec) -> int:
    """Processes of vLLM in one pod."""
    return sum(number for _, number in _processes(engine))


def _processes(engine: EngineSpec) -> tuple[tuple[str, int], ...]:
    """Each kind with its number."""
    front_ends = api_servers(engine.extra_args)
    return (
        (many(front_ends, "front end"), front_ends),
        (many(engine.data_parallel_size, "scheduler"), engine.data_parallel_size),
        (many(engine.ranks, "rank"), engine.ranks),
    )


def cpu_quantity(lines: tuple[CpuLine, ...]) -> str:
    """Their sum as the API server writes it down; empty without any."""
    millicores = sum(line.millicores for line in lines)
    if not millicores:
        return ""
    return f"{millicores}m" if millicores % _CORE else str(millicores // _CORE)
