"""Whether a disk tier that is written from the CPU tier and the CPU tier before it go together."""

from typing import Final

from kvtier_operator.planning.backends import any_backend_that
from kvtier_operator.planning.checks.check import CheckInput
from kvtier_operator.planning.tiers.capacity import chunk_bytes
from kvtier_operator.planning.units import count, many, size
from kvtier_operator.planning.verdict import CheckResult, Verdicts

_VERDICTS: Final = Verdicts("disk-behind-memory", "spec.tiers.disk.capacity")


def disk_behind_memory(given: CheckInput) -> CheckResult:
    """Blocks pass through the CPU tier both ways, and a part of it holds what waits to be written.

    What finds no room there is not written (kvtier_connector.core.disk.tier, `admit`): a prompt longer than
    that part needs a disk that keeps up with its prefill.
    """
    disk, cpu, engine = given.spec.tiers.disk, given.tiers.cpu, given.spec.engine
    if disk is None:
        return _VERDICTS.passed("no disk tier", reason="NoDiskTier")
    share = given.traits.disk.waiting_share
    if share is None:
        those = any_backend_that(lambda traits: traits.disk.waiting_share)
        return _VERDICTS.passed(f"backend {those} alone writes behind its CPU tier", reason="NotAskedFor")
    engines = engine.data_parallel_size
    chunk = chunk_bytes(given.geometry, given.backend)
    held = given.backend.disk_chunks
    if held is None or not held.chunks:
        return _VERDICTS.reject(
            "DiskHoldsNothing",
            f"{size(disk.capacity.bytes)} in {many(engines, 'engine')} cannot hold one chunk of "
            f"{given.backend.tokens_per_chunk} tokens, "
            f"{size(chunk)}, and its index; raise it",
        )
    bound = disk.writes_per_hour
    if bound is not None and bound.bytes // engines < chunk:
        return _VERDICTS.reject(
            "DiskNeverWritten",
            f"{size(bound.bytes)} an hour in {many(engines, 'engine')} never lets a chunk of {size(chunk)} "
            f"be written; raise it above {size(chunk * engines)}, or leave it out for no bound",
            field="spec.tiers.disk.writesPerHour",
        )
    waiting = cpu.tokens // engines // share
    longest = engine.max_model_len or given.geometry.max_position_tokens
    numbers = f"{count(held.chunks)} chunks an engine, {count(waiting)} tokens may wait to be written"
    if longest is not None and waiting < longest:
        needed = longest * share * given.geometry.kv_bytes_per_token * engines
        return _VERDICTS.warn(
            "MemorySmallBesideDisk",
            f"{numbers}, the longest sequence has {count(longest)}: where the disk does not keep up with its "
            f"prefill, its end is not written; {size(needed)} of CPU tier would hold it",
            by_itself="has what was left out written when it is used again",
            field="spec.tiers.cpu.capacity",
        )
    return _VERDICTS.passed(numbers)
