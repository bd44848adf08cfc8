"""What a picker can tell of several engines behind one port."""

from typing import Final

from kvtier_operator.api.resource import Spec
from kvtier_operator.planning.checks.check import CheckInput
from kvtier_operator.planning.units import count
from kvtier_operator.planning.verdict import CheckResult, Verdicts

_VERDICTS: Final = Verdicts("data-parallel", "spec.engine.dataParallelSize")
_ADDS_UP: Final = "it adds up their queues and caches"
_READS_ONE: Final = "of their metrics it reads the first series alone, one engine's queue and cache"
"""Upstream's extractors (pkg/epp/datalayer, metrics/spec.go)."""


def data_parallel(given: CheckInput) -> CheckResult:
    """All engines of a pod serve at one port, where vLLM gives a request to the one with the least to do.

    Which that was no picker learns (v1/engine/core_client.py, DPLBAsyncMPClient, looks at no prefix).
    """
    engines = given.spec.engine.data_parallel_size
    if engines == 1:
        return _VERDICTS.passed("one engine a pod, which the picker knows by its address")
    flavor = given.spec.router.flavor
    tokens = given.tiers.cpu.tokens
    reads = _ADDS_UP if given.picker.adds_up_engines else _READS_ONE
    return _VERDICTS.warn(
        "EnginesBehindOnePort",
        f"{engines} engines of a pod serve at one port: picker {flavor} tells pods apart, not engines. "
        f"It counts the {count(tokens)} tokens of their CPU tiers as one, while vLLM hands a request to the "
        f"idlest engine, so about 1 in {engines} prefixes that it knows is found there, among "
        f"{count(tokens // engines)} tokens; {reads}. Where the model fits one engine's "
        f"ranks, set dataParallelSize to 1 and {_more_pods(given.spec, engines)}",
    )


def _more_pods(spec: Spec, engines: int) -> str:
    """As many engines in pods of their own."""
    if spec.autoscaling is None:
        return f"replicas to {spec.replicas * engines}"
    least, most = spec.least_replicas * engines, spec.most_replicas * engines
    return f"autoscaling's minReplicas to {least}, maxReplicas to {most}"
