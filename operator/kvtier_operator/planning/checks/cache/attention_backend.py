"""Whether a named attention backend is one for this model."""

from typing import Final

from kvtier_operator.planning.arguments.extra_args import FIELD, field_path_of
from kvtier_operator.planning.checks.check import CheckInput
from kvtier_operator.planning.model_shape.attention_backend import BACKENDS, OPTIONS, Attention, named_backend
from kvtier_operator.planning.verdict import CheckResult, Verdicts

_VERDICTS: Final = Verdicts("attention-backend", FIELD)


def attention_backend(given: CheckInput) -> CheckResult:
    """The engine ends at start with a backend for another kind of attention (platforms/cuda.py)."""
    name = named_backend(given.spec.engine.extra_args)
    if not name:
        return _VERDICTS.passed("vLLM chooses the attention backend")
    place = field_path_of(given.spec.engine.extra_args, *OPTIONS)
    if name not in BACKENDS:
        return _VERDICTS.warn(
            "BackendNotKnown",
            f"kvtier does not know attention backend {name}, nor the block that vLLM takes with it: "
            f"planned are {given.geometry.block_tokens} tokens, and the picker follows what its engine says",
            field=place,
        )
    needed, _ = BACKENDS[name]
    kept = given.geometry.attention.of_backends
    if given.geometry.mla and kept is Attention.HEADS:
        kept = Attention.LATENT
    if needed is not kept and given.geometry.groups:
        fitting = ", ".join(other for other, (attention, _) in BACKENDS.items() if attention is kept)
        advice = f"remove it, or name one of {fitting}" if fitting else "remove it"
        return _VERDICTS.reject(
            "BackendNotSupported",
            f"attention backend {name} is for {needed}, but this model keeps {kept}, so vLLM ends at start: "
            f"{advice}",
            field=place,
        )
    return _VERDICTS.passed(f"{name} is for {needed}")
