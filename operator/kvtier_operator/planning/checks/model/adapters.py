"""Whether adapters have the room that they need."""

from typing import Final

from kvtier_operator.planning.arguments.extra_args import FIELD
from kvtier_operator.planning.checks.check import CheckInput
from kvtier_operator.planning.units import many
from kvtier_operator.planning.verdict import CheckResult, Verdicts
from kvtier_operator.planning.weights.adapters import (
    AT_ONCE,
    IN_MEMORY,
    adapter_bytes,
    adapters_of,
    number_of,
)

_VERDICTS: Final = Verdicts("adapters", "spec.model.loraModules")


def adapters(given: CheckInput) -> CheckResult:
    """Of `--max-loras` and `--max-cpu-loras`, which are vLLM's own unless the resource has them."""
    room, modules = adapters_of(given.spec), len(given.spec.model.lora_modules)
    if room is None:
        return _VERDICTS.passed("no adapters")
    words = given.spec.engine.extra_args
    at_once, in_memory = number_of(words, AT_ONCE), number_of(words, IN_MEMORY)
    too_few = ""
    if at_once is not None and at_once < 1:
        too_few = f"{AT_ONCE} {at_once} is less than 1"
    elif in_memory is not None and in_memory < room.at_once:
        too_few = f"{IN_MEMORY} {in_memory} is less than {AT_ONCE} {room.at_once}"
    if too_few:
        wrong = f"{too_few}, at which vLLM ends: raise it, or leave it out"
        return _VERDICTS.reject("AdaptersDoNotFit", wrong, field=FIELD)
    if adapter_bytes(given.spec, given.geometry) is None:
        return _VERDICTS.warn(
            "AdaptersNotPlanned",
            "the model's weights or its hidden size are not known, and so not what adapters take: set "
            "spec.model.weights, have its config.json in spec.model.configRef, or leave them room by "
            "spec.engine.gpuMemoryUtilization and spec.engine.resources",
            by_itself="plans without them",
        )
    if modules > room.at_once:
        return _VERDICTS.warn(
            "AdaptersTakeTurns",
            f"{many(modules, 'adapter')}, and a batch has requests to {room.at_once} of them and the model: "
            f"those to others wait; raise {AT_ONCE} in {FIELD}, which takes more of each GPU",
        )
    return _VERDICTS.passed(
        f"room for {room.at_once} in a batch, {room.in_memory} in memory, of rank {room.rank}"
    )
