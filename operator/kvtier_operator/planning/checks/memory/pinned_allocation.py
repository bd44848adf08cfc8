"""Whether one rank pins more than a driver call takes."""

from typing import Final

from kvtier_operator.api.spec.engine import Device
from kvtier_operator.api.spec.tiers import DEFAULT_BACKEND
from kvtier_operator.planning.backends.traits import TierPlace
from kvtier_operator.planning.checks.check import CheckInput, Verdicts
from kvtier_operator.planning.units import size
from kvtier_operator.planning.verdict import CheckResult

_VERDICTS: Final = Verdicts("pinned-allocation", "spec.tiers.cpu.capacity")
_ONE_CALL_BYTES: Final = 500 * 10**9
"""Reported ceiling of one pinning call: cudaHostAlloc fails above about 500 GB (LMCache #1063, #792), and
cudaHostRegister at 512 GiB (vLLM #51080; vLLM and kvtier register pieces of 64 GiB)."""


def pinned_allocation(given: CheckInput) -> CheckResult:
    """Of a backend that pins what a process holds in one call."""
    one_call, project = given.traits.cpu.pins_in_one_call, given.traits.project
    rank_bytes = given.tiers.cpu.bytes_per_rank
    more_ranks = "raise spec.engine.tensorParallelSize, "
    if given.traits.cpu.place is TierPlace.SERVER:
        rank_bytes *= given.ranks  # the server pins all of it
        more_ranks = ""
    elif given.geometry.mla:
        rank_bytes *= given.spec.engine.tensor_parallel_size  # the first rank of an engine does
        more_ranks = ""
    if given.spec.engine.device is Device.CUDA and one_call and rank_bytes > _ONE_CALL_BYTES:
        return _VERDICTS.warn(
            "PinningMayFail",
            f"{project} pins {size(rank_bytes)} in one call; calls above {size(_ONE_CALL_BYTES)} are "
            f"reported to fail; lower the capacity, {more_ranks}or set spec.backend to {DEFAULT_BACKEND}",
            by_itself=f"starts the engines, and EnginesReady has {project}'s words if they end",
        )
    return _VERDICTS.passed("no single pinning call is larger than drivers take")
