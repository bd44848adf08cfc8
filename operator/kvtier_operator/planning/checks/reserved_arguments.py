"""vLLM arguments that kvtier computes."""

from typing import Final

from kvtier_operator.planning.checks.check import CheckInput, Verdicts
from kvtier_operator.planning.plan import CheckResult

_VERDICTS: Final = Verdicts("reserved-arguments", "spec.engine.extraArgs")
_RESERVED: Final = {
    "--kv-transfer-config": "spec.backend and spec.tiers make it",
    # vLLM, config/vllm.py: it replaces the connector of --kv-transfer-config.
    "--kv-offloading-size": "it would overwrite kvtier's connector; spec.tiers.cpu.capacity makes it",
    "--kv-offloading-backend": "it would overwrite kvtier's connector, which spec.backend chooses",
    "--tensor-parallel-size": "spec.engine.tensorParallelSize makes it",
    "-tp": "spec.engine.tensorParallelSize makes it",
    "--data-parallel-size": "spec.engine.dataParallelSize makes it",
    "-dp": "spec.engine.dataParallelSize makes it",
    "--pipeline-parallel-size": "kvtier plans tensor and data parallelism only",
    "-pp": "kvtier plans tensor and data parallelism only",
    "--decode-context-parallel-size": "kvtier plans tensor and data parallelism only",
    "--prefill-context-parallel-size": "kvtier plans tensor and data parallelism only",
    "--max-model-len": "spec.engine.maxModelLen makes it",
    "--block-size": "spec.engine.blockSize makes it",
    "--gpu-memory-utilization": "spec.engine.gpuMemoryUtilization makes it, on cuda",
    "--kv-cache-memory-bytes": "spec.engine.kvCacheMemory makes it",
    "--num-gpu-blocks-override": "spec.engine.kvCacheMemory makes it",
    "--kv-cache-dtype": "spec.engine.kvCacheDtype makes it",
    "--enable-prefix-caching": "the tiers need it; it is always on",
    "--no-enable-prefix-caching": "the tiers hold the prefix cache; it is always on",
    "--shutdown-timeout": "spec.engine.drainSeconds makes it, and the pod's grace period follows",
    "--port": "spec.engine.port makes it",
    "--model": "spec.model.name makes it",
    "--served-model-name": "the picker and the route know the model as spec.model.name",
    "--revision": "spec.model.revision makes it",
}
_WITH_VOLUME: Final = {"--download-dir": "weights are kept in spec.model.volume"}
_WITH_EVENTS: Final = {"--kv-events-config": "spec.router.kvEvents makes it"}


def reserved_arguments(given: CheckInput) -> CheckResult:
    """The last one on a command line wins, and the plan would no longer be what runs."""
    reserved = _RESERVED | (_WITH_EVENTS if given.spec.router.kv_events else {})
    reserved |= _WITH_VOLUME if given.spec.model.volume else {}
    for position, argument in enumerate(given.spec.engine.extra_args):
        name = argument.partition("=")[0].partition(".")[0]
        name = name.replace("_", "-") if name.startswith("--") else name
        if name in reserved:
            return _VERDICTS.reject(
                "ReservedArgument",
                f"{name} is kvtier's to set: {reserved[name]}; remove it",
                field=f"spec.engine.extraArgs[{position}]",
            )
    return _VERDICTS.passed("no argument that kvtier computes")
