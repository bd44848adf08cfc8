"""Whether the picker's index, memory and replicas are what the resource means."""

from typing import Final

from kvtier_common.tier import Tier
from kvtier_operator.api.quantity import parse_quantity
from kvtier_operator.api.resource import Spec
from kvtier_operator.api.spec.router import Weights
from kvtier_operator.planning.checks.check import CheckInput, check
from kvtier_operator.planning.router.router_plan import router_warnings
from kvtier_operator.planning.units import GIB, count, size
from kvtier_operator.planning.verdict import CheckResult
from kvtier_scorer.config.contract import body_limits


@check("spec.router.version")
def picker_entries(parts: CheckInput) -> CheckResult:
    """What this flavour and version of the picker cannot do as the resource asks."""
    warnings = router_warnings(parts.resource, parts.geometry, parts.tiers)
    if unread := _unread(parts):
        why = f"weighs nothing, for {parts.picker.title} has no such scorer"
        lines = [f"{field} {why}: leave it out, or set spec.router.flavor to builtin" for field in unread]
        return picker_entries.warn(
            "WeightUnread",
            "; ".join((*lines, *warnings)),
            by_itself="weighs the other scorers alone",
            field=unread[0],
        )
    if warnings:
        return picker_entries.warn(
            "PickerLimits", "; ".join(warnings), by_itself="configures what this version can do"
        )
    return picker_entries.passed(
        f"{parts.router.flavor} {parts.router.version}: one entry stands for "
        f"{parts.router.tokens_per_entry} tokens"
    )


def _unread(parts: CheckInput) -> list[str]:
    """Fields of weights that somebody gave, for the API server fills in the others, and no scorer reads."""
    usual, weights = Weights().by_scorer(), parts.spec.router.weights.by_scorer()
    return [
        f"spec.router.weights.{Weights.model_fields[name].alias}"
        for name in parts.router.unread
        if weights[name] != usual[name]
    ]


@check("spec.engine.gpuMemory")
def picker_gpu_entries(parts: CheckInput) -> CheckResult:
    """Nothing to look at: the operator asks the first engine (planning/tiers/capacity.py).

    Until then the picker takes num_gpu_blocks from metrics, in blocks of its own size, and has no engine to
    send anything to.
    """
    entries = parts.router.entries.get(Tier.GPU)
    if entries is not None:
        return picker_gpu_entries.passed(f"{count(entries)} entries for the device's cache")
    if not parts.router.gpu_from_metrics:
        return picker_gpu_entries.passed(
            "this picker keeps no index for the device's cache", reason="NotAskedFor"
        )
    missing = _missing_fields(parts)
    return picker_gpu_entries.passed(
        "the device's cache is not known before the engine runs: the operator asks the first one that is "
        "ready, and the picker starts anew once with its entries; to have them in the plan, or without an "
        f"operator, set {' with '.join(missing)}{', or ' if missing else ''}spec.engine.kvCacheMemory",
        reason="LeftToOperator",
        field=missing[0] if missing else "spec.engine.kvCacheMemory",
    )


def _missing_fields(parts: CheckInput) -> list[str]:
    """Fields that lack: memory and weights tell the size together."""
    return [
        name
        for name, known in (
            ("spec.engine.gpu", parts.spec.engine.gpu_bytes is not None),
            ("spec.model.weights", parts.geometry.weights_bytes is not None),
        )
        if not known
    ]


_BODIES: Final = {True: "all the bodies that it takes", False: "many requests under way"}
_MUCH_BYTES: Final = 4 * GIB
"""Of bodies at worst; a person should have meant to give a picker more."""


@check("spec.router.resources.limits.memory")
def picker_memory(parts: CheckInput) -> CheckResult:
    """A picker that is killed for memory forgets its index, and does so again once that has filled up."""
    needed_bytes = parts.router.resources.memory_bytes
    limit = parts.router.resources.limits["memory"]
    if parse_quantity(limit) < needed_bytes:
        return picker_memory.warn(
            "PickerMemoryShort",
            f"{limit} is less than the {size(needed_bytes)} that the picker may come to with a full index "
            f"and {_BODIES[parts.picker.memory.bounds_bodies]}: it is killed then and forgets where "
            "prefixes are; raise it",
            by_itself="keeps to the limit, and a picker that was killed starts anew",
            weight=10,
        )
    asked = parts.spec.router.max_body_size
    follows = "memory" not in parts.spec.router.resources.limits
    if asked and follows and body_limits(None, asked.bytes).worst_memory_bytes > _MUCH_BYTES:
        return picker_memory.warn(
            "PickerMemoryLarge",
            f"bodies of {asked} make the picker's memory limit {limit}, for those that clients may send at a "
            f"time: lower it, or set {picker_memory.field} if so much is meant",
            by_itself=f"requests {parts.router.resources.requests['memory']}: the rest is the limit's alone",
            field="spec.router.maxBodySize",
            weight=-30,
        )
    return picker_memory.passed(f"up to {size(needed_bytes)} of {limit}")


_ADDS_UP: Final = "it adds up their queues and caches"
_READS_ONE: Final = "of their metrics it reads the first series alone, one engine's queue and cache"
"""Upstream's extractors (pkg/epp/datalayer, metrics/spec.go)."""


@check("spec.engine.dataParallelSize")
def data_parallel(parts: CheckInput) -> CheckResult:
    """All engines of a pod serve at one port, where vLLM gives a request to the one with the least to do.

    Which that was no picker learns (v1/engine/core_client.py, DPLBAsyncMPClient, looks at no prefix).
    """
    engines = parts.spec.engine.data_parallel_size
    if engines == 1:
        return data_parallel.passed("one engine a pod, which the picker knows by its address")
    flavor = parts.spec.router.flavor
    tokens = parts.tiers.cpu.tokens
    reads = _ADDS_UP if parts.picker.adds_up_engines else _READS_ONE
    return data_parallel.warn(
        "EnginesBehindOnePort",
        f"{engines} engines of a pod serve at one port: picker {flavor} tells pods apart, not engines. "
        f"It counts the {count(tokens)} tokens of their CPU tiers as one, while vLLM hands a request to the "
        f"idlest engine, so about 1 in {engines} prefixes that it knows is found there, among "
        f"{count(tokens // engines)} tokens; {reads}. Where the model fits one engine's "
        f"ranks, set dataParallelSize to 1 and {_more_pods(parts.spec, engines)}",
    )


def _more_pods(spec: Spec, engines: int) -> str:
    """As many engines in pods of their own."""
    if spec.autoscaling is None:
        return f"replicas to {spec.replicas * engines}"
    least, most = spec.least_replicas * engines, spec.most_replicas * engines
    return f"autoscaling's minReplicas to {least}, maxReplicas to {most}"


@check("spec.router.replicas")
def picker_replicas(parts: CheckInput) -> CheckResult:
    """Upstream's pickers elect a leader, which answers alone; what it knows of prefixes ends with it.

    The times are llm-d-router's, 0.9 and 0.10, as measured: 0.7 to 2 s, and 16 to 18 s. A leader that ends by
    itself gives its lease back; that of one that was killed has to run out (15 s) and be asked for.
    """
    pickers = parts.spec.router.replicas
    if pickers > 1:
        return picker_replicas.warn(
            "StandbyStartsEmpty",
            f"of {pickers} pickers one serves, and the others stand by with an empty index: they take over "
            "by themselves, within 2 s of one that is asked to end and 18 s of one that is killed, and learn "
            "where prefixes are from new requests; they do not serve more requests than one",
        )
    return picker_replicas.passed("one picker sees all requests")
