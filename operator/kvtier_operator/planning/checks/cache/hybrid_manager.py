"""Whether vLLM's hybrid cache manager is left as the model and the backend need it."""

from typing import Final

from kvtier_operator.planning.arguments.extra_args import FIELD, field_path_of, switch_value
from kvtier_operator.planning.checks.check import CheckInput
from kvtier_operator.planning.model_shape.geometry import LayerKind
from kvtier_operator.planning.verdict import CheckResult, Verdicts

_VERDICTS: Final = Verdicts("hybrid-manager", FIELD)
OFF: Final = "--disable-hybrid-kv-cache-manager"
_ON: Final = OFF.replace("--", "--no-", 1)


def hybrid_manager(given: CheckInput) -> CheckResult:
    """Left alone, vLLM turns it off where it must (config/vllm.py, VllmConfig.__post_init__)."""
    off = switch_value(given.spec.engine.extra_args, OFF)
    without = given.traits.no_hybrid_manager is not None
    place = field_path_of(given.spec.engine.extra_args, OFF, _ON)
    if off is False and without:
        return _VERDICTS.reject(
            "HybridManagerNotSupported",
            f"{_ON}: {given.traits.title} cannot work with vLLM's hybrid cache "
            "manager, and vLLM stops at start; remove it",
            field=place,
        )
    if not off or without or not given.geometry.hybrid:
        return _VERDICTS.passed("vLLM decides on its hybrid cache manager")
    kinds = {group.kind for group in given.geometry.groups}
    if LayerKind.STATE in kinds:
        return _VERDICTS.reject(
            "HybridManagerNeeded",
            f"{OFF}: a model with linear-attention layers does not start without vLLM's hybrid cache "
            "manager; remove it",
            field=place,
        )
    return _VERDICTS.warn(
        "WindowsKeptInFull",
        f"{OFF}: sliding-window layers keep every token, on the device too, so fewer tokens fit; without it "
        "they keep their windows only",
        field=place,
    )
