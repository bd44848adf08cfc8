"""Whether the CPU tier can hold one longest sequence."""

from typing import Final

from kvtier_operator.planning.backends.kept_states import kept_bytes
from kvtier_operator.planning.checks.check import CheckInput
from kvtier_operator.planning.tiers.capacity import chunk_bytes, prefix_tokens
from kvtier_operator.planning.units import count, each_of, size
from kvtier_operator.planning.verdict import CheckResult, Verdicts

_VERDICTS: Final = Verdicts("tier-holds-sequence", "spec.tiers.cpu.capacity")


def tier_holds_sequence(given: CheckInput) -> CheckResult:
    """Without room for one chunk it is no tier; without room for one prompt it evicts what it just stored."""
    cpu, engine = given.tiers.cpu, given.spec.engine
    tokens = cpu.tokens // engine.data_parallel_size
    if cpu.held_tokens == 0:
        one = chunk_bytes(given.geometry, given.backend)
        return _VERDICTS.reject(
            "TierHoldsNothing",
            f"{size(cpu.capacity_bytes)} cannot hold one chunk of "
            f"{given.backend.tokens_per_chunk} tokens, {size(one)} in "
            f"{each_of(engine.data_parallel_size, 'engine')}; raise it",
        )
    if tokens == 0:
        prefix = prefix_tokens(given.spec, given.geometry) or 0
        needed = _sequence_bytes(given, prefix)
        return _VERDICTS.reject(
            "TierHoldsNothing",
            f"{size(cpu.capacity_bytes)} cannot hold one prefix of {count(prefix)} tokens, whose windows and "
            f"states take {size(_beside_bytes(given, prefix))} beside them; raise it to "
            f"{size(needed * engine.data_parallel_size)} at least",
        )
    longest = engine.max_model_len or given.geometry.max_position_tokens
    if longest is not None and tokens < longest:
        return _VERDICTS.warn(
            "SequenceLargerThanTier",
            f"the tier holds {count(tokens)} tokens, the longest sequence has {count(longest)}: its "
            "prefix never fits whole; "
            f"{size(_sequence_bytes(given, longest) * engine.data_parallel_size)} would hold one",
            by_itself="has what does not fit computed again",
        )
    return _VERDICTS.passed(
        f"{count(tokens)} tokens an engine" + (f", longest sequence {count(longest)}" if longest else "")
    )


def _sequence_bytes(given: CheckInput, tokens: int) -> int:
    return tokens * given.geometry.kv_bytes_per_token + _beside_bytes(given, tokens)


def _beside_bytes(given: CheckInput, tokens: int) -> int:
    return kept_bytes(tokens, given.spec, given.geometry, given.backend)
