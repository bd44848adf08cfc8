"""Whether the backend can put its tier on explicit huge pages."""

from typing import Final

from kvtier_operator.api.spec.tiers import DEFAULT_BACKEND, HugepageSize, Policy
from kvtier_operator.planning.backends.traits import BackendTraits, TierPlace
from kvtier_operator.planning.checks.check import CheckInput, Verdicts
from kvtier_operator.planning.verdict import CheckResult

_VERDICTS: Final = Verdicts("hugepages-backend", "spec.tiers.cpu.hugepages")
_PREFER: Final = (
    "a pod cannot prefer huge pages, only require them, so without a request it may use none "
    "(Kubernetes #71233); set Require where the nodes have them"
)


def hugepages_backend(given: CheckInput) -> CheckResult:
    """`Require` is refused where it cannot be kept, `Prefer` is told what it gets."""
    cpu, backend, traits = given.spec.tiers.cpu, given.spec.backend, given.traits
    if cpu.hugepages.policy is Policy.OFF:
        return _VERDICTS.passed("no huge pages asked for", reason="NotAskedFor")
    wanted = cpu.hugepages.page_size or HugepageSize.TWO_MIB
    if wanted in traits.cpu.page_sizes:
        if cpu.hugepages.policy is Policy.PREFER:
            return _VERDICTS.warn("HugepagesNotRequested", _PREFER, by_itself=_preferred(traits))
        return _VERDICTS.passed(f"backend {backend} takes {wanted} pages")
    able = " or ".join(sorted(traits.cpu.page_sizes))
    problem = (
        f"backend {backend} takes huge pages of {able} only, not {wanted}"
        if able
        else f"backend {backend} cannot use explicit huge pages{_why_none(traits)}"
    )
    advice = f"set pageSize to {able}" if able else f"set policy to Off, or spec.backend to {DEFAULT_BACKEND}"
    if cpu.hugepages.policy is Policy.REQUIRE:
        return _VERDICTS.reject("HugepagesNotSupported", f"{problem}; {advice}")
    fallback = "goes on with 4 KiB pages, which Prefer allows"
    return _VERDICTS.warn("HugepagesNotSupported", f"{problem}; {advice}", by_itself=fallback)


def _preferred(traits: BackendTraits) -> str:
    """What becomes of `Prefer` in a pod and in a local run."""
    if traits.cpu.falls_back:
        return "requests none; a local run takes what is free"
    cannot = f"for {traits.project} cannot fall back where they are short"
    return f"requests none; a local run has none either, {cannot}"


def _why_none(traits: BackendTraits) -> str:
    return f": {traits.project} keeps its tier in /dev/shm" if traits.cpu.place is TierPlace.SHM else ""
