"""Whether LoRA adapters are counted, told apart and kept where the resource may expect it."""

from kvtier_operator.api.spec.command_line import FIELD
from kvtier_operator.planning.backends import any_backend_that
from kvtier_operator.planning.backends.traits import Folder
from kvtier_operator.planning.checks.check import CheckInput, check
from kvtier_operator.planning.units import count, many
from kvtier_operator.planning.verdict import CheckResult
from kvtier_operator.planning.weights.device_weights import (
    AT_ONCE,
    ENABLE,
    IN_MEMORY,
    adapter_bytes,
    adapters_of,
)


@check("spec.backend")
def adapter_keys(parts: CheckInput) -> CheckResult:
    """The adapter is in vLLM's hashes (v1/core/kv_cache_utils.py), and not in every backend's own keys."""
    backend = parts.spec.backend
    if adapters_of(parts.spec) is None:
        return adapter_keys.passed("no adapters")
    if not parts.traits.tells_adapters_apart:
        return adapter_keys.warn(
            "AdaptersShareKeys",
            f"{ENABLE}: the keys of backend {backend} leave the adapter out, so a prompt to one adapter is "
            "answered from what another has computed of the same tokens, and wrongly; set spec.backend to "
            f"{any_backend_that(lambda traits: traits.tells_adapters_apart)}"
            f"{parts.traits.adapters_otherwise}",
            weight=40,
        )
    return adapter_keys.passed(f"backend {backend} keeps apart what adapters compute")


@check("spec.tiers.disk")
def adapters_on_disk(parts: CheckInput) -> CheckResult:
    """A block's key has an adapter's name and path, not its weights (vLLM, v1/core/kv_cache_utils.py).

    Whoever starts with other weights of that name finds what the former computed, where that was written.
    """
    disk, traits = parts.spec.tiers.disk, parts.traits.disk
    if disk is None or adapters_of(parts.spec) is None:
        return adapters_on_disk.passed("no adapters beside a disk tier")
    if not traits.keeps_adapters:
        holds = f" of {count(parts.tiers.disk.tokens)} tokens" if parts.tiers.disk else ""
        return adapters_on_disk.warn(
            "AdaptersNotOnDisk",
            f"backend {parts.spec.backend} never writes to disk what is computed with an adapter, whose key "
            f"does not tell its weights: the disk tier{holds} is for requests to the model itself, and what "
            "adapters compute is found in the CPU tier alone; size spec.tiers.cpu.capacity for it",
        )
    if disk.volume.outlives_pods and traits.folder is not Folder.EMPTIED:
        return adapters_on_disk.warn(
            "ReplacedAdaptersFound",
            "the disk's blocks are found by an adapter's name and path and outlive the pod: once these stand "
            "for new weights, prompts are answered from what the former computed, and wrongly; give new "
            "weights another name, empty the folder, take a volume that goes with the pod, or take backend "
            + any_backend_that(lambda backend: not backend.disk.keeps_adapters),
            weight=40,
        )
    return adapters_on_disk.passed("what adapters compute goes with the pod's disk")


@check("spec.model.loraModules")
def adapters(parts: CheckInput) -> CheckResult:
    """Of `--max-loras` and `--max-cpu-loras`, which are vLLM's own unless the resource has them."""
    plan, modules = adapters_of(parts.spec), len(parts.spec.model.lora_modules)
    if plan is None:
        return adapters.passed("no adapters")
    words = parts.spec.engine.extra_args
    at_once, in_memory = words.number(AT_ONCE), words.number(IN_MEMORY)
    too_few = ""
    if at_once is not None and at_once < 1:
        too_few = f"{AT_ONCE} {at_once} is less than 1"
    elif in_memory is not None and in_memory < plan.at_once:
        too_few = f"{IN_MEMORY} {in_memory} is less than {AT_ONCE} {plan.at_once}"
    if too_few:
        wrong = f"{too_few}, at which vLLM ends: raise it, or leave it out"
        return adapters.reject("AdaptersDoNotFit", wrong, field=FIELD)
    if adapter_bytes(parts.spec, parts.geometry) is None:
        return adapters.warn(
            "AdaptersNotPlanned",
            f"{_not_known(parts)}, and so not what adapters take; or leave them room by "
            "spec.engine.gpuMemoryUtilization and spec.engine.resources",
            by_itself="plans without them",
            weight=80,
        )
    if modules > plan.at_once:
        return adapters.warn(
            "AdaptersTakeTurns",
            f"{many(modules, 'adapter')}, and a batch has requests to {plan.at_once} of them and the model: "
            f"those to others wait; raise {AT_ONCE} in {FIELD}, which takes more of each GPU",
        )
    return adapters.passed(
        f"room for {plan.at_once} in a batch, {plan.in_memory} in memory, of rank {plan.rank}"
    )


def _not_known(parts: CheckInput) -> str:
    """What an adapter's size would follow from, with the field that tells it."""
    if parts.geometry.weights_bytes is None:
        return "the size of the model's weights is not known: set spec.model.weights"
    return "nothing tells the model's matrices: have its config.json in spec.model.configRef"
