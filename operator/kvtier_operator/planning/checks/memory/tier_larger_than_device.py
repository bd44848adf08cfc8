"""Whether the CPU tier adds anything to the device's cache."""

from typing import Final

from kvtier_operator.planning.checks.check import CheckInput
from kvtier_operator.planning.units import count
from kvtier_operator.planning.verdict import CheckResult, Verdicts

_VERDICTS: Final = Verdicts("tier-larger-than-device", "spec.tiers.cpu.capacity")


def tier_larger_than_device(given: CheckInput) -> CheckResult:
    """The tiers are inclusive: the CPU tier holds what the device holds too."""
    gpu, cpu = given.tiers.gpu, given.tiers.cpu
    if gpu is None:
        return _VERDICTS.passed("the device's own cache is not known", reason="Unknown")
    numbers = f"CPU tier {count(cpu.tokens)} tokens, device {count(gpu.tokens)}"
    if cpu.tokens <= gpu.tokens:
        return _VERDICTS.warn(
            "TierAddsNothing",
            f"{numbers}: the tiers are inclusive, so a tier not larger than the device's cache adds no "
            "prefixes; raise it",
            by_itself="makes the tier all the same",
        )
    return _VERDICTS.passed(f"{numbers}: {cpu.tokens / max(gpu.tokens, 1):.1f} times as many")
