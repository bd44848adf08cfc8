"""Whether the backend can put its tier on explicit huge pages."""

from typing import Final

from kvtier_operator.api.backend import Backend
from kvtier_operator.api.tiers import HugepageSize, Policy
from kvtier_operator.planning.checks.check import CheckInput, Verdicts
from kvtier_operator.planning.verdict import CheckResult

_VERDICTS: Final = Verdicts("hugepages-backend", "spec.tiers.cpu.hugepages")
_PAGE_SIZES: Final = {
    Backend.KVTIER: {HugepageSize.TWO_MIB, HugepageSize.ONE_GIB},
    # vLLM 0.32 and 0.33 put the region in /dev/shm; hugetlbfs is an open pull request (#45693).
    Backend.NATIVE: set[HugepageSize](),
    # LMCache 0.5.6: local_cpu_use_hugepages and --l1-use-hugepages, 2 MiB only (#2643).
    Backend.LMCACHE: {HugepageSize.TWO_MIB},
    Backend.LMCACHE_MP: {HugepageSize.TWO_MIB},
}
_PREFER: Final = (
    "a pod cannot prefer huge pages, only require them, so without a request it may use none "
    "(Kubernetes #71233); set Require where the nodes have them"
)
_NO_FALLBACK: Final = (
    "requests none; a local run has none either, for LMCache cannot fall back where they are short"
)
_BY_ITSELF: Final = {
    Backend.KVTIER: "requests none; a local run takes what is free",
    Backend.LMCACHE: _NO_FALLBACK,
    Backend.LMCACHE_MP: _NO_FALLBACK,
}


def hugepages_backend(given: CheckInput) -> CheckResult:
    """`Require` is refused where it cannot be kept, `Prefer` is told what it gets."""
    cpu, backend = given.spec.tiers.cpu, given.spec.backend
    if cpu.hugepages.policy is Policy.OFF:
        return _VERDICTS.passed("no huge pages asked for", reason="NotAskedFor")
    wanted = cpu.hugepages.page_size or HugepageSize.TWO_MIB
    if wanted in _PAGE_SIZES[backend]:
        if cpu.hugepages.policy is Policy.PREFER:
            return _VERDICTS.warn("HugepagesNotRequested", _PREFER, by_itself=_BY_ITSELF[backend])
        return _VERDICTS.passed(f"backend {backend} takes {wanted} pages")
    able = " or ".join(sorted(_PAGE_SIZES[backend]))
    problem = (
        f"backend {backend} takes huge pages of {able} only, not {wanted}"
        if able
        else f"backend {backend} cannot use explicit huge pages: vLLM keeps its tier in /dev/shm"
    )
    advice = f"set pageSize to {able}" if able else "set policy to Off, or spec.backend to KVTier"
    if cpu.hugepages.policy is Policy.REQUIRE:
        return _VERDICTS.reject("HugepagesNotSupported", f"{problem}; {advice}")
    fallback = "goes on with 4 KiB pages, which Prefer allows"
    return _VERDICTS.warn("HugepagesNotSupported", f"{problem}; {advice}", by_itself=fallback)
