"""Where a plan and vLLM differ."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Final

from tests.engine.planning.oracle.cases import Case
from tests.engine.planning.oracle.combinations import Combination
from tests.engine.planning.oracle.library import LIBRARY
from tests.engine.planning.oracle.planned import Planned, planned

if TYPE_CHECKING:
    from kvtier_operator.planning.observed import Observed

# More than this apart is a difference.
_TOLERANCE: Final = 0.01
_FP8: Final = ("auto", "fp8", "fp8_e4m3")
_TOO_SMALL: Final = 16  # a block that sparse MLA takes on no card
_FIGURES: Final = ("bytes_per_token_per_rank", "bytes_per_token", "bytes_per_prefix")


@dataclass(frozen=True, slots=True)
class Difference:
    """One figure of one combination.

    Attributes:
        case: The model's name.
        combination: The engine.
        figure: What differs; `starts` where one of both refuses it.
        vllm: What vLLM says.
        plan: What the plan says.
    """

    case: str
    combination: Combination
    figure: str
    vllm: str
    plan: str


def is_undecided(entry: Mapping[str, Any]) -> bool:
    """Whether the card that vLLM was asked about refuses what another one keeps.

    FlashInfer's backends keep NVFP4, and FP8 of sparse MLA, on Blackwell. A draft that is built into the
    model's own names is one that the oracle cannot build.
    """
    refused = entry.get("refused", "")
    if "Duplicate layer name" in refused:
        return True
    if "No valid attention backend" not in refused:
        return False
    sparse = "use_sparse=True" in refused and entry["dtype"] in _FP8
    return entry["dtype"].startswith("nvfp4") or (sparse and entry["block"] != _TOO_SMALL)


def _weights_decide(case: Case, entry: Mapping[str, Any]) -> bool:
    """Whether vLLM takes the model's dtype from weights that are not there, for the file has none."""
    text = case.config.get("text_config") or {}
    said = {"torch_dtype", "dtype"} & {*case.config, *text}
    return not said and "is incompatible with dtype" in entry.get("refused", "")


_CUT: Final = "AssertionError: "
# Of what a plan does not size, and says so.
_NOT_SIZED: Final = ("cannot size", "none keeps its tokens", "caches no prefixes")


def _tells_nothing(entry: Mapping[str, Any], plan: Planned) -> bool:
    """Whether a plan sizes no such type, or vLLM refuses something else than ranks that cut weights.

    What a class has by default is short of what vLLM reads.
    """
    refused = entry.get("refused", "")
    if any(words in plan.refused for words in _NOT_SIZED):
        return True
    return entry.get("answer") is None and refused != _CUT and "divisible" not in refused


def differences(case: Case, said: list[Mapping[str, Any]], minor: str) -> Iterator[Difference]:
    """All of one model."""
    seen: dict[str, Observed] = {}
    for entry in said:
        asked = {field.name: entry[field.name] for field in fields(Combination)}
        combination = Combination(**asked | {"arguments": tuple(entry["arguments"])})
        plan = planned(case, combination, seen, minor)
        if _weights_decide(case, entry):
            continue
        if case.name.startswith(LIBRARY) and _tells_nothing(entry, plan):
            continue
        for figure, vllm, ours in _compare(entry, plan):
            yield Difference(case.name, combination, figure, vllm, ours)


def _compare(entry: Mapping[str, Any], plan: Planned) -> Iterator[tuple[str, str, str]]:
    answer = entry.get("answer")
    if is_undecided(entry):
        return
    if answer is None:
        if not (plan.refused or plan.doubts):
            yield "starts", entry.get("refused", "keeps no KV cache"), "passes"
        return
    if plan.refused:
        yield "starts", "starts", plan.refused
        return
    if plan.block_tokens != answer["block_tokens"]:
        yield "block_tokens", str(answer["block_tokens"]), str(plan.block_tokens)
    for figure in _FIGURES:
        vllm, ours = answer[figure], getattr(plan, figure)
        if abs(vllm - ours) > _TOLERANCE * max(vllm, 1):
            yield figure, f"{vllm:,.0f}", f"{ours:,}"
