"""Whether memory holds the CPU tier: of the machine, /dev/shm, huge pages, locked and pinned pages."""

from typing import Final

from kvtier_operator.api.quantity import parse_bytes
from kvtier_operator.api.spec.engine import Device
from kvtier_operator.api.spec.tiers import DEFAULT_BACKEND, Ability, Backend, backends_with, one_of
from kvtier_operator.api.spec.tiers.cpu import HugepageSize, Policy
from kvtier_operator.planning.backends.parts import preferred_pages
from kvtier_operator.planning.backends.traits import BackendTraits, TierPlace
from kvtier_operator.planning.base.devices import not_tested
from kvtier_operator.planning.base.tier_plan import HugepagesPlan
from kvtier_operator.planning.checks.check import CheckInput, check
from kvtier_operator.planning.pod.engine_memory import DEVICE_CACHE_LINE, SEQUENCES_LINE, BudgetLine
from kvtier_operator.planning.tiers.capacity import CPU_DEVICE_KV_CACHE_BYTES
from kvtier_operator.planning.units import count, size, size_exact
from kvtier_operator.planning.verdict import CheckResult


@check("spec.tiers.cpu.capacity")
def machine_memory(parts: CheckInput) -> CheckResult:
    """The tier alone, then the pod with its sidecars and huge pages: of this machine, or of usual servers."""
    memory, reserved = parts.machine.memory_bytes, parts.machine.reserved_bytes
    replicas = max(1, parts.spec.least_replicas)
    tier = parts.spec.tiers.cpu.capacity.bytes * replicas
    if memory is None:
        return _largest_server(parts) or _usual_server(parts)
    if tier > memory + reserved:
        return machine_memory.reject(
            "TierLargerThanMachine",
            f"the CPU tier of {size_exact(tier)}{_times(replicas)} is larger than this machine's memory, "
            f"{size_exact(memory + reserved)}; lower it",
        )
    pages = (parts.backend.hugepages.bytes if parts.backend.hugepages else 0) * replicas
    sidecars = sum(sidecar.memory_bytes for sidecar in parts.backend.sidecars)
    ordinary = (sum(line.bytes for line in parts.budget.memory) + sidecars) * replicas
    ordinary -= min(_free_pages_bytes(parts), tier)
    over = max(ordinary - memory, ordinary + pages - memory - reserved)
    has = f"{size(memory)}{f' beside {size(reserved)} of huge pages' if reserved else ''}"
    if over > 0:
        return machine_memory.reject(
            "BudgetLargerThanMachine",
            f"the engine with its tiers needs {size(ordinary + pages)}{_times(replicas)}, this machine has "
            f"{has}; {_ways_to_lower(parts, tier, over)}",
        )
    now = parts.machine.available_bytes
    available = f", {size(now)} of it available now" if now is not None else ""
    return machine_memory.passed(f"{size(ordinary + pages)} needed, {has} in this machine{available}")


_LARGE_SERVER_BYTES: Final = 6 << 40
"""24 memory modules of 256 GiB: more than servers with GPUs have, but for a few."""
_MUCH_FOR_TOKENS_BYTES: Final = 32 << 30
"""1,024 sequences of a million tokens take 4 GiB a rank, of ten million 64."""


_LARGEST_SERVER_BYTES: Final = 64 << 40
"""More than any machine has that one kernel runs."""


def _largest_server(parts: CheckInput) -> CheckResult | None:
    """What an engine's pod takes that no machine has; None where one may."""
    lines = [(line.bytes, f"{line.what} ({line.why})") for line in parts.budget.memory]
    pages = parts.backend.hugepages.bytes if parts.backend.hugepages else 0
    lines.append((pages, "huge pages of the CPU tier"))
    total_bytes, (most_bytes, what) = sum(taken for taken, _ in lines), max(lines)
    if total_bytes <= _LARGEST_SERVER_BYTES:
        return None
    of_tier = parts.spec.tiers.cpu.capacity.bytes > total_bytes // 2
    return machine_memory.reject(
        "LargerThanAnyMachine",
        f"one pod would need {size(total_bytes)} of memory, and no machine has more than "
        f"{size(_LARGEST_SERVER_BYTES)}; lower what takes most, {size(most_bytes)}: {what}",
        field=machine_memory.field if of_tier else "spec.engine",
    )


def _usual_server(parts: CheckInput) -> CheckResult:
    capacity_bytes = parts.spec.tiers.cpu.capacity.bytes
    if capacity_bytes > _LARGE_SERVER_BYTES and parts.observed.nodes is None:
        return machine_memory.warn(
            "TierLargerThanServers",
            f"large servers have up to {size(_LARGE_SERVER_BYTES)} of memory, and a CPU tier of "
            f"{size(capacity_bytes)} in one pod also makes it start in {count(parts.budget.startup_s)} s and "
            f"gives the picker {_picker_memory(parts)}; see that a node of yours has as much, or lower it",
        )
    if (tokens := _tokens_of_sequences(parts)) is not None:
        return machine_memory.warn(
            "SequencesTakeMemory",
            f"{size(tokens.bytes)} of the pod's memory are for the tokens of sequences alone, {tokens.why}: "
            "set spec.engine.maxModelLen to the longest that you serve, or --max-num-seqs in "
            "spec.engine.extraArgs to the most at once",
            by_itself="asks for all of it",
            field="spec.engine.maxModelLen",
        )
    return machine_memory.passed(
        "no machine to look at: nodes are checked before rollout", reason="NotLooked"
    )


def _picker_memory(parts: CheckInput) -> str:
    memory = parts.router.resources.limits.get("memory")
    return f"a memory limit of {size(parse_bytes(memory))}" if memory else "no memory limit"


def _tokens_of_sequences(parts: CheckInput) -> BudgetLine | None:
    """The line of the pod's memory, where it is more than a large server can spare unnoticed."""
    lines = (line for line in parts.budget.memory if line.what == SEQUENCES_LINE)
    return next((line for line in lines if line.bytes > _MUCH_FOR_TOKENS_BYTES), None)


def _free_pages_bytes(parts: CheckInput) -> int:
    """What a tier that prefers huge pages, and requires none, finds of them on this machine."""
    pages = None if parts.backend.hugepages else _pages(parts)
    pool = parts.machine.free_hugepages or {}
    return pool.get(pages.page_bytes, 0) * pages.page_bytes if pages else 0


def _ways_to_lower(parts: CheckInput, tier_bytes: int, over_bytes: int) -> str:
    """What makes the pods smaller, and by enough where one figure tells."""
    engine = parts.spec.engine
    ways = []
    if over_bytes < tier_bytes:
        ways.append(f"lower the capacity ({size(tier_bytes)}) by {size(over_bytes)}")
    if parts.spec.least_replicas > 1:
        ways.append(f"lower {parts.spec.least_replicas_field}")
    if any(line.what == DEVICE_CACHE_LINE for line in parts.budget.memory):
        default = f" to less than {size(CPU_DEVICE_KV_CACHE_BYTES)}, its default"
        ways.append(
            "lower spec.engine.kvCacheMemory"
            if engine.kv_cache_memory
            else f"set spec.engine.kvCacheMemory{default}"
        )
    return ", or ".join(ways or ["serve a smaller model here"])


def _times(replicas: int) -> str:
    return f" ({replicas} replicas together)" if replicas > 1 else ""


@check("spec.engine.shmSize", about_sizes=True)
def shared_memory(parts: CheckInput) -> CheckResult:
    """A tier that is kept there is all of it filled at start (vLLM 0.32, v1/kv_offload/cpu)."""
    needed, asked = parts.budget.needed_shm_bytes, parts.spec.engine.shm_size
    if asked and asked.bytes <= needed:
        return shared_memory.reject(
            "ShmTooSmall",
            f"{size_exact(asked.bytes)} of /dev/shm cannot hold {_held_there(parts)}, {size_exact(needed)}, "
            "and vLLM's own queues; leave shmSize out to have it computed",
        )
    machine = parts.machine.shm_bytes
    replicas = max(1, parts.spec.least_replicas)
    if machine is not None and needed * replicas > machine:
        return shared_memory.reject(
            "MachineShmTooSmall",
            f"{_held_there(parts)} needs {size_exact(needed * replicas)} in /dev/shm, this machine's has "
            f"{size_exact(machine)}; lower the capacity, or remount /dev/shm larger",
            field="spec.tiers.cpu.capacity",
        )
    return shared_memory.passed(
        f"{size(parts.budget.shm_bytes)} of /dev/shm, {size(needed)} of it for {_held_there(parts)}"
    )


def _held_there(parts: CheckInput) -> str:
    tier_bytes = parts.backend.shm_bytes
    if parts.budget.needed_shm_bytes == tier_bytes:
        return "the CPU tier"
    return f"{'the CPU tier and ' if tier_bytes else ''}what spec.engine.extraArgs keep there"


_PREFER: Final = (
    "a pod cannot prefer huge pages, only require them, so without a request it may use none "
    "(Kubernetes #71233); set Require where the nodes have them"
)


@check("spec.tiers.cpu.hugepages", about_sizes=True)
def hugepages_backend(parts: CheckInput) -> CheckResult:
    """`Require` is refused where it cannot be kept, `Prefer` is told what it gets."""
    cpu, backend, traits = parts.spec.tiers.cpu, parts.spec.backend, parts.traits
    if cpu.hugepages.policy is Policy.NEVER:
        return hugepages_backend.passed("no huge pages asked for", reason="NotAskedFor")
    wanted = cpu.hugepages.page_size or HugepageSize.TWO_MIB
    if wanted in traits.cpu.page_sizes:
        if not _may_have(parts, wanted):
            return hugepages_backend.warn(
                "PagesOfAnotherKernel",
                _other_kernel(parts, wanted),
                field="spec.tiers.cpu.hugepages.pageSize",
                weight=110,
            )
        if cpu.hugepages.policy is Policy.PREFER:
            return hugepages_backend.warn("HugepagesNotRequested", _PREFER, by_itself=_prefer_text(traits))
        return hugepages_backend.passed(f"backend {backend} takes {wanted} pages")
    able = " or ".join(sorted(traits.cpu.page_sizes))
    problem = (
        f"backend {backend} takes huge pages of {able} only, not {wanted}"
        if able
        else f"backend {backend} cannot use explicit huge pages{_why_none(traits)}"
    )
    advice = (
        f"set pageSize to {able}" if able else f"set policy to Never, or spec.backend to {DEFAULT_BACKEND}"
    )
    if cpu.hugepages.policy is Policy.REQUIRE:
        return hugepages_backend.reject("HugepagesNotSupported", f"{problem}; {advice}")
    fallback = "goes on with 4 KiB pages, which Prefer allows"
    return hugepages_backend.warn("HugepagesNotSupported", f"{problem}; {advice}", by_itself=fallback)


def _may_have(parts: CheckInput, wanted: HugepageSize) -> bool:
    """Whether the kernel may have pages of that size: of this machine or a cluster the pools tell."""
    engine, nodes = parts.spec.engine, parts.observed.nodes or ()
    if parts.observed.machine or any(f"hugepages-{wanted}" in node.allocatable for node in nodes):
        return True
    arm = engine.gpu is None and engine.node_selector.get("kubernetes.io/arch") == "arm64"
    return arm or wanted.needs_page_bytes in {None, engine.host_page_bytes}


def _other_kernel(parts: CheckInput, wanted: HugepageSize) -> str:
    page_bytes, gpu = parts.spec.engine.host_page_bytes, parts.spec.engine.gpu
    sizes = (page for page in HugepageSize if page.needs_page_bytes in {None, page_bytes})
    return (
        f"{wanted}: the kernel {f'beside {gpu}' if gpu else 'of most nodes'} has ordinary pages of "
        f"{size(page_bytes)}, and no huge ones of that size beside them: set it to {one_of(sizes)}, or "
        "see that your nodes' kernels differ"
    )


def _prefer_text(traits: BackendTraits) -> str:
    """What becomes of `Prefer` in a pod and in a local run."""
    if traits.cpu.falls_back:
        return "requests none; a local run takes what is free"
    cannot = f"for {traits.project} cannot fall back where they are short"
    return f"requests none; a local run has none either, {cannot}"


def _why_none(traits: BackendTraits) -> str:
    return f": {traits.project} keeps its tier in /dev/shm" if traits.cpu.place is TierPlace.SHM else ""


@check("spec.tiers.cpu.hugepages.policy")
def hugepages_pool(parts: CheckInput) -> CheckResult:
    """Needed against free, of that page size; replicas of a local run add up."""
    policy, pool = parts.spec.tiers.cpu.hugepages.policy, parts.machine.free_hugepages
    pages = _pages(parts)
    if parts.backend.hugepages and parts.observed.machine is None:
        return hugepages_pool.passed(
            "nodes have to have the pages: Karpenter makes no node for a pod that requests huge pages, "
            "and cluster-autoscaler only in a group that it knows to have them; where nodes come so, set "
            "Never",
            reason="LeftToNodes",
        )
    if pages is None or pool is None:
        return hugepages_pool.passed("no pool of this machine to look at", reason="NotLooked")
    needed, free = pages.pages * max(1, parts.spec.least_replicas), pool.get(pages.page_bytes, 0)
    numbers = f"{count(needed)} pages of {size(pages.page_bytes)} needed, {count(free)} free"
    if needed <= free:
        return hugepages_pool.passed(numbers)
    advice = f"raise nr_hugepages of that size by {count(needed - free)}"
    if policy is Policy.REQUIRE:
        return hugepages_pool.reject("NotEnoughHugepages", f"{numbers}; {advice}, or set policy to Prefer")
    switch = "shmem_enabled" if _is_shared(parts) else "enabled"
    return hugepages_pool.warn(
        "NotEnoughHugepages",
        f"{numbers}; {advice}",
        by_itself=f"goes on with transparent huge pages, if their {switch} allows them, else with 4 KiB",
    )


def _is_shared(parts: CheckInput) -> bool:
    """Whether several processes use the region (kvtier_connector.core.index.slots, `TierGeometry.request`).

    The kernel has a switch of its own for such memory (Documentation/admin-guide/mm/transhuge.rst).
    """
    return parts.spec.engine.tensor_parallel_size > 1 or parts.spec.tiers.disk is not None


def _pages(parts: CheckInput) -> HugepagesPlan | None:
    """Pages required, or those that the backend takes here if there are any."""
    cpu = parts.spec.tiers.cpu
    if parts.backend.hugepages:
        return parts.backend.hugepages
    if cpu.hugepages.policy is not Policy.PREFER or not parts.traits.cpu.falls_back:
        return None
    return preferred_pages(cpu, parts.tiers.cpu.bytes_per_rank, parts.ranks)


@check("spec.tiers.cpu.memlock.policy", about_sizes=True)
def memlock(parts: CheckInput) -> CheckResult:
    """RLIMIT_MEMLOCK where it bounds what is asked for; who else locks the tier, or that nobody does.

    On CUDA the limit is asked for under `Require` alone: the driver's call is not bounded by it.
    """
    policy = parts.spec.tiers.cpu.memlock.policy
    if Ability.TELLS_OF_TIERS not in parts.spec.backend.abilities:
        return _other_backend(parts.spec.backend, policy)
    on_cuda = parts.spec.engine.device is Device.GPU and not not_tested(parts.spec)
    if policy is Policy.NEVER:
        return _never(on_cuda=on_cuda)
    if policy is Policy.PREFER and on_cuda:
        return memlock.passed(
            "the engine asks the driver to page-lock the tier for DMA, which RLIMIT_MEMLOCK does not bound; "
            "a line of its log, and EnginesReady, say whether it did",
            reason="LeftToDriver",
        )
    return _limit(parts, policy)


def _other_backend(backend: Backend, policy: Policy) -> CheckResult:
    if policy is Policy.NEVER:
        return memlock.passed(f"backend {backend} is not told to lock anything", reason="NotAskedFor")
    itself = f"backend {backend} pins its tier by itself on a GPU, and nothing reports whether it did"
    if policy is Policy.REQUIRE:
        return memlock.warn(
            "MemlockNotVerified",
            f"{itself}; spec.backend {one_of(backends_with(Ability.TELLS_OF_TIERS))} locks and reports",
            by_itself="starts the engines without knowing",
            weight=-50,
        )
    return memlock.passed(itself, reason="LeftToBackend")


def _never(*, on_cuda: bool) -> CheckResult:
    if not on_cuda:
        return memlock.passed("nothing is locked: the policy is Never", reason="NotAskedFor")
    return memlock.warn(
        "NotPageLocked",
        "Never: the tier is not page-locked, which DMA needs for its full speed (measured: a load took 353 "
        "ms in place of 100, a cold prompt 632 in place of 466); set Prefer, which needs no rights. As Off "
        "it was the default once, and the API server has written it into resources that did not choose it",
        by_itself="locks nothing",
    )


def _limit(parts: CheckInput, policy: Policy) -> CheckResult:
    """RLIMIT_MEMLOCK of this machine in a local run; what a cluster needs otherwise.

    A pod has no field for the limit (Kubernetes #3595): IPC_LOCK lifts it only where it is effective, that
    is for root; otherwise the node's container runtime needs LimitMEMLOCK.
    """
    if parts.backend.hugepages:
        return memlock.passed("explicit huge pages are never swapped: no limit bounds them")
    needed = parts.spec.tiers.cpu.capacity.bytes // parts.spec.engine.data_parallel_size
    required = policy is Policy.REQUIRE
    if parts.observed.machine is None:
        how = (
            "the pod runs with IPC_LOCK as root, or the node's container runtime has LimitMEMLOCK=infinity"
            if required
            else "what RLIMIT_MEMLOCK of the node's container runtime (LimitMEMLOCK) allows is locked"
        )
        reason = "CheckedOnNodes" if required else "LeftToNodes"
        return memlock.passed(f"{size(needed)} to lock in each engine: {how}", reason=reason)
    limit = parts.machine.memlock_bytes
    if limit is None or limit >= needed:
        return memlock.passed(f"{size(needed)} to lock, limit {'none' if limit is None else size(limit)}")
    numbers = f"{size(needed)} to lock, the limit (ulimit -l) is {size(limit)}"
    if required:
        return memlock.reject("MemlockTooLow", f"{numbers}; raise the limit, or set policy to Prefer")
    return memlock.passed(
        f"{numbers}: at most {size(limit)} is locked, the rest may be swapped; a line of the engine's log, "
        "and EnginesReady, say what it got",
        reason="LockedInPart",
    )


_ONE_CALL_BYTES: Final = 500 * 10**9
"""Reported ceiling of one pinning call: cudaHostAlloc fails above about 500 GB (LMCache #1063, #792), and
cudaHostRegister at 512 GiB (vLLM #51080; vLLM and kvtier register pieces of 64 GiB)."""


@check("spec.tiers.cpu.capacity", about_sizes=True)
def pinned_allocation(parts: CheckInput) -> CheckResult:
    """Of a backend that pins what a process holds in one call."""
    one_call, project = parts.traits.cpu.pins_in_one_call, parts.traits.project
    rank_bytes = parts.tiers.cpu.bytes_per_rank
    more_ranks = "raise spec.engine.tensorParallelSize, "
    if parts.traits.cpu.place is TierPlace.SERVER:
        rank_bytes *= parts.ranks  # the server pins all of it
        more_ranks = ""
    elif parts.geometry.mla:
        rank_bytes *= parts.spec.engine.tensor_parallel_size  # the first rank of an engine does
        more_ranks = ""
    if parts.spec.engine.device is Device.GPU and one_call and rank_bytes > _ONE_CALL_BYTES:
        return pinned_allocation.warn(
            "PinningMayFail",
            f"{project} pins {size(rank_bytes)} in one call; calls above {size(_ONE_CALL_BYTES)} are "
            f"reported to fail; lower the capacity, {more_ranks}or set spec.backend to {DEFAULT_BACKEND}",
            by_itself=f"starts the engines, and EnginesReady has {project}'s words if they end",
            weight=140,
        )
    return pinned_allocation.passed("no single pinning call is larger than drivers take")
