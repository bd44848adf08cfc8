"""Checks of the checkpoint's code and quantisation, and of how ranks share it out."""

from typing import Any

import pytest
from tests.cases.checks import PASS, REJECT, says, verdict
from tests.cases.planning import resource

from kvtier_operator.planning.checks.check import Check
from kvtier_operator.planning.checks.checkpoint import quantization, trusted_code, weights_shared_out
from kvtier_operator.planning.observed import Observed

CONFIG = {
    "model_type": "llama",
    "num_hidden_layers": 4,
    "num_attention_heads": 16,
    "num_key_value_heads": 8,
    "hidden_size": 1024,
}
CODE = CONFIG | {"model_type": "of_its_own", "auto_map": {"AutoConfig": "configuration.Config"}}
EXPERTS = CONFIG | {"model_type": "qwen3_moe", "num_experts": 8, "moe_intermediate_size": 12}
UNEVEN = CONFIG | {"intermediate_size": 2052}
BLOCKS = {"quantization_config": {"quant_method": "fp8", "weight_block_size": [128, 128]}}
GROUPS = {"quantization_config": {"quant_method": "awq", "bits": 4, "group_size": 128}}
WEIGHTS = {"num_bits": 4, "group_size": 128}
PACKED: dict[str, Any] = {
    "quantization_config": {
        "quant_method": "compressed-tensors",
        "format": "pack-quantized",
        "config_groups": {"group_0": {"weights": WEIGHTS}},
    }
}
TOWER = {"model_type": "qwen2_5_vl", "text_config": CONFIG, "vision_config": {"num_heads": 12}}
EXPERT_PARALLEL = "--enable-expert-parallel"
MXFP4 = CONFIG | {"quantization_config": {"quant_method": "mxfp4"}}
DEPRECATED = CONFIG | {"quantization_config": {"quant_method": "fbgemm_fp8"}}
PRODUCER = {"producer": {"name": "modelopt"}, "quantization": {"quant_algo": "MIXED_PRECISION"}}
MIXED = CONFIG | {"quantization_config": PRODUCER}
OLDER, NEWER = ({"image": f"vllm/vllm-openai:v0.{minor}.0"} for minor in (32, 33))


@pytest.mark.parametrize(
    ("check", "config", "engine", "reason"),
    [
        (trusted_code, CODE, {}, "CodeNotTrusted"),
        (trusted_code, CODE, {"extraArgs": ["--trust-remote-code"]}, ""),
        (trusted_code, CONFIG | {"auto_map": CODE["auto_map"]}, {}, ""),
        (quantization, CONFIG, {"extraArgs": ["--quantization=hqq"]}, "QuantizationNotSupported"),
        (quantization, DEPRECATED, {}, "QuantizationNotSupported"),
        (quantization, DEPRECATED, {"extraArgs": ["--allow-deprecated-quantization"]}, ""),
        (quantization, MXFP4, {"extraArgs": ["--dtype=float16"]}, "QuantizationNotSupported"),
        (quantization, MXFP4, {}, ""),
        (quantization, MIXED, OLDER, "QuantizationNotSupported"),
        (quantization, MIXED, NEWER, ""),
        (weights_shared_out, CONFIG, {"extraArgs": [EXPERT_PARALLEL]}, "NoExperts"),
        (weights_shared_out, EXPERTS, {"extraArgs": [EXPERT_PARALLEL]}, ""),
        (weights_shared_out, EXPERTS, {"tensorParallelSize": 16}, "FewerExpertsThanRanks"),
        (weights_shared_out, EXPERTS, {"tensorParallelSize": 8}, "WidthCut"),
        (weights_shared_out, EXPERTS, {"tensorParallelSize": 8, "extraArgs": [EXPERT_PARALLEL]}, ""),
        (weights_shared_out, EXPERTS, {"tensorParallelSize": 4}, ""),
        (weights_shared_out, UNEVEN, {"tensorParallelSize": 4}, ""),
        (weights_shared_out, UNEVEN, {"tensorParallelSize": 8}, "WidthCut"),
        (weights_shared_out, UNEVEN | {"model_type": "lfm2"}, {"tensorParallelSize": 8}, ""),
        *(
            (weights_shared_out, CONFIG | kind | {"intermediate_size": 1280}, {"tensorParallelSize": n}, cut)
            for kind in (BLOCKS, GROUPS, PACKED)
            for n, cut in ((1, ""), (2, ""), (4, "WidthCut"))
        ),
        (weights_shared_out, EXPERTS | BLOCKS | {"moe_intermediate_size": 64}, {"tensorParallelSize": 2}, ""),
        (weights_shared_out, TOWER, {"tensorParallelSize": 4}, ""),
        (weights_shared_out, TOWER, {"tensorParallelSize": 8}, "WidthCut"),
        (
            weights_shared_out,
            TOWER,
            {"tensorParallelSize": 8, "extraArgs": ["--mm-encoder-tp-mode=data"]},
            "",
        ),
    ],
)
def test_what_does_not_start_is_refused(
    check: Check, config: dict[str, Any], engine: dict[str, Any], reason: str
) -> None:
    result = verdict(check, resource(engine=engine), Observed(model_config=config))
    says(result, REJECT if reason else PASS, reason or "Passed")
