"""What one run measures: the model, the planned arguments, the sides, what they are asked. Kept as JSON."""

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, Self

from kvtier_common.benchmarks import Workload
from kvtier_connector.bench.choices import DEMO, EVERY_SIDE, KVTIER, NONE, SHAPES, VLLM
from kvtier_connector.bench.comparison import Comparison
from kvtier_connector.bench.load import kv_bytes_per_token
from kvtier_connector.bench.model import write_bench_config, write_bench_model
from kvtier_connector.bench.vllm_arguments import ServeOptions
from kvtier_connector.config import GIB, MIB
from kvtier_operator.api.first_resource import first_document
from kvtier_operator.api.parse import parse_resource
from kvtier_operator.planning.observed import Observed
from kvtier_operator.planning.planner import make_plan

CUDA: Final = "cuda"
CPU: Final = "cpu"
LOW, HIGH, NEW = "low_cache", "high_cache", "new_prompts"
"""Workloads: system prompts that the device cache holds, or only the tier; and prompts asked once."""
_SHARED: Final = Workload(
    groups=12, prompts_per_group=4, system_tokens=12_000, question_tokens=128, output_tokens=32, concurrency=8
)
_ON_A_CARD: Final = {
    # first, as a life's first round is slower
    NEW: replace(_SHARED, groups=16, prompts_per_group=1, system_tokens=4_000),
    LOW: replace(_SHARED, groups=4, prompts_per_group=10, system_tokens=4_000),
    HIGH: _SHARED,
}
_DRY: Final = {
    name: replace(
        workload,
        groups=max(workload.groups // 4, 1),
        prompts_per_group=min(workload.prompts_per_group, 2),
        system_tokens=workload.system_tokens // 60,
        question_tokens=16,
        output_tokens=4,
        concurrency=2,
    )
    for name, workload in _ON_A_CARD.items()
}
_ROUNDS: Final = {NEW: 3, LOW: 3, HIGH: 1}
_TINY: Final[Mapping[str, object]] = MappingProxyType(
    {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 2, "head_dim": 32}
    | {"intermediate_size": 128, "max_position_embeddings": 2048}
)
"""Of a model that only shows that everything runs."""
_ANSWER_TOKENS: Final = 64  # behind the longest prompt, at most


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """All that a run's figures depend on, but for the machine; a second call goes on only with the same."""

    device: str  # CUDA or CPU
    shape: str  # name of the model's sizes
    sides: tuple[str, ...]  # what is compared, the most important first
    arguments: tuple[str, ...]  # of `vllm serve`, as planned, without the model
    prompt_tokens: int  # of prompts whose first token is waited for
    prompts: int  # of those, in each life
    workloads: Mapping[str, Workload]  # by name, in the order in which they are asked
    rounds: Mapping[str, int]
    device_tokens: int  # of the device cache: the high-cache workload does not fit it
    tier_tokens: int  # of the tier, which it does
    step_tokens: int | None  # `max_num_batched_tokens`; None for vLLM's own

    @classmethod
    def on(
        cls, device: str, shape: str, sides: tuple[str, ...], prompts: int, *, card_bytes: int = 0
    ) -> Self:
        """Return what is measured on a device, with what the planner makes of a resource by default.

        Only two things are not as planned: the tier has room for the high-cache workload, and the device
        cache less than that workload takes, as otherwise no prompt would leave a card's memory. Steps are as
        long as those of vLLM's server on a card with so many bytes: its offline engines have longer ones.
        """
        dry = device == CPU
        workloads = _DRY if dry else _ON_A_CARD
        high = workloads[HIGH]
        one_tokens = high.prompt_tokens + high.output_tokens
        shared_tokens = high.groups * high.system_tokens
        # questions and answers of all requests lie behind the shared tokens
        tier_tokens = math.ceil(1.15 * (shared_tokens + high.requests * (one_tokens - high.system_tokens)))
        prompt_tokens = 500 if dry else 15_400
        device_tokens = max(shared_tokens * 3 // 5, prompt_tokens + _ANSWER_TOKENS, 2 * one_tokens)
        config = model_config(device, shape)
        token_bytes = kv_bytes_per_token(config, 2)
        return cls(
            device=device,
            shape=shape,
            sides=sides,
            arguments=planned_arguments(
                (SHAPES[shape].models or ("kvtier/bench",))[0],
                config,
                tier_bytes=_whole(tier_tokens * token_bytes, MIB if dry else GIB),
                engine={"device": "cpu", "blockSize": 32, "extraArgs": ["--enforce-eager"]} if dry else {},
            ),
            prompt_tokens=prompt_tokens,
            prompts=prompts,
            workloads=workloads,
            rounds=dict.fromkeys(workloads, 1) if dry else _ROUNDS,
            device_tokens=device_tokens,
            tier_tokens=tier_tokens,
            step_tokens=None if dry else server_step_tokens(card_bytes),
        )

    def as_json(self) -> dict[str, Any]:
        """Return it as JSON has it."""
        value: dict[str, Any] = json.loads(json.dumps(asdict(self)))
        return value

    @classmethod
    def of(cls, value: Mapping[str, Any]) -> Self:
        """Read what `as_json` gave."""
        return cls(
            **{
                **value,
                "sides": tuple(value["sides"]),
                "arguments": tuple(value["arguments"]),
                "workloads": {name: Workload(**each) for name, each in value["workloads"].items()},
            }
        )

    def comparison(self, folder: Path) -> Comparison:
        """Return what all sides get; the model is written into the folder."""
        drawn = self.device == CUDA
        if drawn:
            model = write_bench_config(folder / "model", self.shape)
        elif not (model := folder / "model").exists():
            write_bench_model(model, self.shape, **_TINY)
        return Comparison(
            model=model,
            drawn=drawn,
            sides=self.sides,
            serve_options=ServeOptions.read(self.arguments),
            device=self.device,
            disks=folder,
        )

    def longest_tokens(self) -> int:
        """Return the longest prompt with its answer."""
        asked = (each.prompt_tokens + each.output_tokens for each in self.workloads.values())
        return max(self.prompt_tokens + _ANSWER_TOKENS, *asked)


def server_step_tokens(card_bytes: int) -> int:
    """Return `max_num_batched_tokens` of vLLM's server; an A100, which has fewer, is not asked after.

    Source: vLLM 0.32 and 0.33, engine/arg_utils.py, get_batch_defaults.
    """
    return 16_384 if card_bytes >= 160 * GIB else 8_192 if card_bytes >= 70 * GIB else 2_048


def model_config(device: str, shape: str) -> dict[str, Any]:
    """Return the configuration of the model: of a shape's sizes on a card, tiny on a CPU."""
    return {**SHAPES[shape].config, **(_TINY if device == CPU else {})}


def planned_arguments(
    name: str, config: Mapping[str, Any], *, tier_bytes: int, engine: Mapping[str, Any]
) -> tuple[str, ...]:
    """Return what `kvtier plan` has an engine run with, without the model.

    Args:
        name: The model's on Hugging Face.
        config: Its config.json.
        tier_bytes: Of `spec.tiers.cpu.capacity`.
        engine: `spec.engine`; everything else is as it is by default.
    """
    document = first_document(name)
    document["spec"] |= {"engine": dict(engine), "tiers": {"cpu": {"capacity": f"{tier_bytes // MIB}Mi"}}}
    plan = make_plan(parse_resource(document, "card"), Observed(model_config=dict(config)))
    assert not plan.rejected, [check.message for check in plan.checks]
    _model, *arguments = plan.engine.args
    return tuple(arguments)


def default_sides(device: str) -> tuple[str, ...]:
    """Return every side; on a CPU, where vLLM's own connectors need a GPU, kvtier beside no tier."""
    if device == CPU:
        return KVTIER, NONE
    first = (KVTIER, VLLM, NONE)
    return *first, *(side for side in EVERY_SIDE if side not in first)


def default_shape(device: str) -> str:
    """Return the sizes that the figures of earlier cards had."""
    return DEMO if device == CPU else "qwen3-8b"


def _whole(size_bytes: int, of_bytes: int) -> int:
    return -(-size_bytes // of_bytes) * of_bytes
