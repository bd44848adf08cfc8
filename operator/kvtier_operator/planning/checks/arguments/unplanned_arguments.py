"""vLLM arguments that nothing of the plan computes, and with which an engine is not what is planned."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from kvtier_operator.planning.arguments.extra_args import FIELD, means_option, object_of, value_of
from kvtier_operator.planning.checks.check import CheckInput
from kvtier_operator.planning.model_shape.geometry import LayerKind
from kvtier_operator.planning.verdict import CheckResult, Verdicts

_VERDICTS: Final = Verdicts("unplanned-arguments", FIELD)
_ANYWHERE: Final = frozenset({"", "None", "0.0.0.0", "::"})  # noqa: S104 - read, not bound
_POOLER: Final = "--pooler-config"
_POOLINGS: Final = ("pooling_type", "seq_pooling_type", "tok_pooling_type")
_OVER_ALL_TOKENS: Final = frozenset({"MEAN", "CLS", "STEP"})
_ONE_POD: Final = "an engine is one pod on one node here"
_OVER_HTTP: Final = "probes, picker and gateway ask engines over HTTP at spec.engine.port"


def _always(_given: CheckInput) -> bool:
    return True


def _has(*kinds: LayerKind) -> Callable[[CheckInput], bool]:
    return lambda given: any(group.kind in kinds for group in given.geometry.groups)


def _pools_all_tokens(given: CheckInput) -> bool:
    """Whether vLLM caches no prefixes for it (config/model.py, is_prefix_caching_supported)."""
    arguments = given.spec.engine.extra_args
    poolings = {str(object_of(arguments, _POOLER).get(name)) for name in _POOLINGS}
    return value_of(arguments, "--runner") != "generate" and not poolings.isdisjoint(_OVER_ALL_TOKENS)


def _has_no_geometry(given: CheckInput) -> bool:
    return given.spec.model.geometry is None


def _listens_elsewhere(given: CheckInput) -> bool:
    return value_of(given.spec.engine.extra_args, "--host") not in _ANYWHERE


@dataclass(frozen=True, slots=True)
class _Rule:
    """Why an argument does not go.

    Attributes:
        why: What is planned in its place.
        applies: When it does not.
        otherwise: Another way out than to remove it.
    """

    why: str
    applies: Callable[[CheckInput], bool] = _always
    otherwise: str = ""


REFUSED: Final[Mapping[str, _Rule]] = {
    **dict.fromkeys(("--headless", "--nnodes", "-n", "--node-rank", "-r"), _Rule(_ONE_POD)),
    "--uds": _Rule(_OVER_HTTP),
    "--grpc": _Rule(_OVER_HTTP),
    "--host": _Rule(f"{_OVER_HTTP}, of the pod's address", _listens_elsewhere),
    "--mm-encoder-only": _Rule("such an engine keeps no keys and values, so its tiers stay empty"),
    _POOLER: _Rule(
        "vLLM caches no prefixes where it pools by MEAN, CLS or STEP, so the tiers stay empty",
        _pools_all_tokens,
        "pool by LAST",
    ),
    "--hf-config-path": _Rule(
        "kvtier plans with the configuration of spec.model.name",
        _has_no_geometry,
        "set spec.model.geometry",
    ),
    "--kv-cache-dtype-skip-layers": _Rule(
        "kvtier counts all layers in one dtype",
        lambda given: bool(given.geometry.groups),
        "give the sum in spec.model.geometry.kvBytesPerToken",
    ),
    "--disable-sliding-window": _Rule(
        "the layers' windows are planned, and it cuts sequences at a window", _has(LayerKind.SLIDING)
    ),
    "--mamba-block-size": _Rule("the block follows from the model's states", _has(LayerKind.STATE)),
    "--mamba-cache-mode": _Rule("the states are planned as vLLM keeps them", _has(LayerKind.STATE)),
    "--use-replayssm": _Rule("it keeps rings beside the states, which are not planned"),
    "--prefix-match-unit": _Rule(
        "vLLM takes its block alone for a model whose layers keep the same",
        lambda given: not given.geometry.hybrid,
    ),
}
WARNED: Final = {
    "--disable-log-stats": "the picker cannot tell who is busy, nor the operator what the tiers hold",
    "--cpu-offload-gb": "its memory is in no budget: add it, for each rank, to spec.engine.resources",
}


def unplanned_arguments(given: CheckInput) -> CheckResult:
    """What would run elsewhere, answer elsewhere or keep something else than is planned."""
    faults, doubts = [], []
    for position, word in enumerate(given.spec.engine.extra_args):
        for option, rule in REFUSED.items():
            if means_option(word, option) and rule.applies(given):
                advice = f"remove it, or {rule.otherwise}" if rule.otherwise else "remove it"
                faults.append((f"{FIELD}[{position}]", f"{option}: {rule.why}; {advice}"))
        doubts += [f"{option}: {why}" for option, why in WARNED.items() if means_option(word, option)]
    if faults:
        return _VERDICTS.reject_each("UnplannedArgument", faults)
    if doubts:
        return _VERDICTS.warn("UnplannedArgument", "; ".join(doubts))
    return _VERDICTS.passed("no argument that changes what is planned")
