"""vLLM arguments that kvtier computes, also where they would stand in a file."""

from typing import Final

from kvtier_operator.planning.arguments.extra_args import FIELD, means_option
from kvtier_operator.planning.checks.check import CheckInput
from kvtier_operator.planning.verdict import CheckResult, Verdicts

_VERDICTS: Final = Verdicts("reserved-arguments", FIELD)
_ONE_PORT: Final = "kvtier runs all engines of a pod behind one port, on one node"
_OTHER_PARALLELISM: Final = (
    "kvtier plans tensor and data parallelism only, and a rank would keep other layers or tokens than planned"
)
_RESERVED: Final = {
    "--kv-transfer-config": "spec.backend and spec.tiers make it",
    # vLLM, config/vllm.py: it replaces the connector of --kv-transfer-config.
    "--kv-offloading-size": "it would overwrite kvtier's connector; spec.tiers.cpu.capacity makes it",
    "--kv-offloading-backend": "it would overwrite kvtier's connector, which spec.backend chooses",
    "--tensor-parallel-size": "spec.engine.tensorParallelSize makes it",
    "-tp": "spec.engine.tensorParallelSize makes it",
    "--data-parallel-size": "spec.engine.dataParallelSize makes it",
    "-dp": "spec.engine.dataParallelSize makes it",
    "--data-parallel-size-local": _ONE_PORT,
    "-dpl": _ONE_PORT,
    "--data-parallel-rank": _ONE_PORT,
    "-dpn": _ONE_PORT,
    "--data-parallel-start-rank": _ONE_PORT,
    "-dpr": _ONE_PORT,
    "--data-parallel-external-lb": _ONE_PORT,
    "-dpe": _ONE_PORT,
    "--no-data-parallel-external-lb": _ONE_PORT,
    "--data-parallel-hybrid-lb": _ONE_PORT,
    "-dph": _ONE_PORT,
    "--no-data-parallel-hybrid-lb": _ONE_PORT,
    "--data-parallel-multi-port-external-lb": _ONE_PORT,
    "-dpm": _ONE_PORT,
    "--pipeline-parallel-size": _OTHER_PARALLELISM,
    "-pp": _OTHER_PARALLELISM,
    "--decode-context-parallel-size": _OTHER_PARALLELISM,
    "-dcp": _OTHER_PARALLELISM,
    "--prefill-context-parallel-size": _OTHER_PARALLELISM,
    "-pcp": _OTHER_PARALLELISM,
    "--max-model-len": "spec.engine.maxModelLen makes it",
    "--block-size": "spec.engine.blockSize makes it",
    "--gpu-memory-utilization": "spec.engine.gpuMemoryUtilization makes it, on cuda",
    "--device-memory-utilization": "spec.engine.gpuMemoryUtilization makes it, on cuda",  # the same option
    "--kv-cache-memory-bytes": "spec.engine.kvCacheMemory makes it",
    "--num-gpu-blocks-override": "spec.engine.kvCacheMemory makes it",
    "--kv-cache-dtype": "spec.engine.kvCacheDtype makes it",
    "--enable-prefix-caching": "the tiers need it; it is always on",
    "--no-enable-prefix-caching": "the tiers hold the prefix cache; it is always on",
    "--disable-prefix-caching": "the tiers hold the prefix cache; it is always on",
    "--shutdown-timeout": "spec.engine.drainSeconds makes it, and the pod's grace period follows",
    "--port": "spec.engine.port makes it",
    "--model": "spec.model.name makes it",
    "--served-model-name": "spec.model.servedNames makes it",
    "--revision": "spec.model.revision makes it",
}
_WITH_VOLUME: Final = {"--download-dir": "weights are kept in spec.model.volume"}
_WITH_EVENTS: Final = {"--kv-events-config": "spec.router.kvEvents makes it"}
_WITH_ADAPTERS: Final = dict.fromkeys(
    ("--lora-modules", "--no-enable-lora"), "spec.model.loraModules makes it"
)
_FILE: Final = "--config"
_IN_A_FILE: Final = (
    f"{_FILE} names a file with more arguments, which kvtier cannot check: write each of them into {FIELD}, "
    "and remove it"
)


def reserved_arguments(given: CheckInput) -> CheckResult:
    """The last one on a command line wins, and the plan would no longer be what runs."""
    reserved = _RESERVED | (_WITH_EVENTS if given.spec.router.kv_events else {})
    reserved |= _WITH_VOLUME if given.spec.model.volume else {}
    reserved |= _WITH_ADAPTERS if given.spec.model.lora_modules else {}
    faults, reason = [], "ReservedArgument"
    for position, argument in enumerate(given.spec.engine.extra_args):
        if means_option(argument, _FILE):
            reason = "ArgumentsInFile"
            faults.append((f"{FIELD}[{position}]", _IN_A_FILE))
            continue
        meant = next((option for option in reserved if means_option(argument, option)), None)
        if meant:
            name = argument.partition("=")[0].partition(".")[0]
            short = "" if name.replace("_", "-") == meant else f" (vLLM reads it as {meant})"
            planned = "" if reserved[meant] is _OTHER_PARALLELISM else " is kvtier's to set"
            message = f"{name}{short}{planned}: {reserved[meant]}; remove it"
            faults.append((f"{FIELD}[{position}]", message))
    if faults:
        return _VERDICTS.reject_each(reason, faults)
    return _VERDICTS.passed("no argument that kvtier computes")
