"""What a plan says of the same model and combination."""

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from tests.cases.kvcachetier import document
from tests.engine.planning.oracle.cases import MODELS, Case, write
from tests.engine.planning.oracle.combinations import Combination

from kvtier_operator.api.resource import KVCacheTier
from kvtier_operator.cli.inputs.observe import observe
from kvtier_operator.errors import InvalidInputError
from kvtier_operator.planning.observed import Observed
from kvtier_operator.planning.planner import make_plan
from kvtier_operator.planning.verdict import Outcome

# What vLLM would start, and a tier be of no use to.
_OURS: Final = "NothingCanBeFound"
# Warnings of what vLLM's own images, or the card that it was asked about, do not start.
_DOUBTS: Final = ("ArchitectureUnknown", "DraftArchitectureUnknown", "CacheDtypeNeedsGPU")


@dataclass(frozen=True, slots=True)
class Planned:
    """A plan's figures, or why there is none.

    Attributes:
        refused: Why it is refused; empty where it is not.
        doubts: Whether it says that only another card, or an image of one's own, may start it.
        block_tokens: Tokens of a block when the engine runs.
        bytes_per_token_per_rank: On one rank's device.
        bytes_per_token: In a tier, all ranks.
        bytes_per_prefix: In a tier, all ranks.
    """

    refused: str = ""
    doubts: bool = False
    block_tokens: int = 0
    bytes_per_token_per_rank: int = 0
    bytes_per_token: int = 0
    bytes_per_prefix: int = 0


@cache
def _scratch() -> TemporaryDirectory[str]:
    return TemporaryDirectory()


def _folder(case: Case) -> Path:
    """Where its files are; those of a row are written there once."""
    if not case.engines:
        return MODELS / case.name
    folder = Path(_scratch().name) / case.key
    if not folder.exists():
        write(case.files, folder)
    return folder


def planned(case: Case, combination: Combination, seen: dict[str, Observed], minor: str) -> Planned:
    """Plan it, as the command line does.

    Args:
        case: The model.
        combination: The engine.
        seen: What was observed of models, for the next combination.
        minor: Of vLLM.
    """
    in_catalogue = case.name.startswith("catalogue: ")
    folder = _folder(case)
    name = case.name.removeprefix("catalogue: ") if in_catalogue else "example/model"
    engine: dict[str, object] = {
        "tensorParallelSize": combination.ranks,
        "kvCacheDtype": combination.dtype,
        "image": f"vllm/vllm-openai:v{minor}.0",
    }
    speculation = combination.speculation
    words = [f"--speculative-config={json.dumps(speculation)}"] if speculation else []
    if words := [*words, *combination.words(folder)]:
        engine["extraArgs"] = words
    if combination.block:
        engine["blockSize"] = combination.block
    changes = {
        "spec.model": {"name": name, "weights": "1Gi"},
        "spec.engine": engine,
        "spec.backend": combination.backend,
        "spec.tiers.cpu.capacity": "2Ti",
    }
    try:
        resource = KVCacheTier.model_validate(document(changes))
    except ValueError as error:
        return Planned(refused=" ".join(str(error).split())[:300])
    try:
        key = f"{case.name} {combination.arguments}"  # a draft's file is among what is observed
        if key not in seen:
            file = None if in_catalogue else str(folder / next(iter(case.files)))
            seen[key] = observe(resource, model_config=file)
        plan = make_plan(resource, seen[key])
    except InvalidInputError as error:
        return Planned(refused=" ".join(str(error).split())[:300])
    rejected = "; ".join(
        f"{check.reason}: {check.message}"
        for check in plan.checks
        if check.outcome is Outcome.REJECT and check.reason != _OURS
    )
    geometry = plan.geometry
    return Planned(
        refused=rejected[:300],
        doubts=any(check.outcome is Outcome.WARN and check.reason in _DOUBTS for check in plan.checks),
        block_tokens=geometry.block_tokens,
        bytes_per_token_per_rank=geometry.kv_bytes_per_token_per_rank,
        bytes_per_token=geometry.kv_bytes_per_token,
        bytes_per_prefix=geometry.bytes_per_prefix,
    )
