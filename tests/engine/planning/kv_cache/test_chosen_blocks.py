"""The block that the planner takes for each kind of attention and GPU: what vLLM's own selection takes."""

import json
import math
import os
import subprocess
import sys
from typing import Any

import pytest
from tests.cases.planning import resource
from tests.shared.newer_vllm import engines_environment

from kvtier_operator.api.spec.engine import KVCacheDtype
from kvtier_operator.api.spec.gpu import Architecture
from kvtier_operator.planning.model_shape.block_tokens import BACKENDS, Attention, choose_block

pytestmark = [pytest.mark.engine, pytest.mark.filterwarnings("ignore")]
_MAJOR = {
    Architecture.AMPERE: 8,
    Architecture.HOPPER: 9,
    Architecture.BLACKWELL: 10,
    Architecture.BLACKWELL_WORKSTATION: 12,
}
_COMPARED = (
    Attention.HEADS,
    Attention.WIDE_HEADS,
    Attention.IMAGE_HEADS,
    Attention.WIDE_IMAGE_HEADS,
    Attention.LATENT,
    Attention.SPARSE_LATENT,
)
_DTYPES = {False: KVCacheDtype.AUTO, True: KVCacheDtype.FP8}


@pytest.fixture(scope="module")
def answers() -> dict[tuple[str, bool, int], dict[str, Any]]:
    done = subprocess.run(
        [sys.executable, "-m", "tests.engine.planning.kv_cache.chosen_blocks"],
        env=os.environ | engines_environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    return {(each["kept"], each["fp8"], each["major"]): each for each in found}


@pytest.mark.parametrize("fp8", [False, True])
@pytest.mark.parametrize("attention", _COMPARED)
def test_without_a_block(attention: Attention, fp8: bool, answers: dict[tuple[str, bool, int], Any]) -> None:
    choice = choose_block(resource().spec.engine, attention, _DTYPES[fp8])
    # no backend of vLLM takes sparse MLA on an Ampere GPU
    known = {gpu: answers.get((attention, fp8, major)) for gpu, major in _MAJOR.items()}
    blocks = {gpu: each["block"] for gpu, each in known.items() if each}
    assert blocks == {gpu: choice.by_gpu[gpu] for gpu in blocks}
    assert blocks[Architecture.HOPPER] == choice.tokens


@pytest.mark.parametrize("fp8", [False, True])
@pytest.mark.parametrize("attention", _COMPARED)
@pytest.mark.parametrize("block", [16, 32, 48, 64, 96, 128, 256])
def test_with_a_block(
    attention: Attention, fp8: bool, block: int, answers: dict[tuple[str, bool, int], Any]
) -> None:
    choice = choose_block(resource(engine={"blockSize": block}).spec.engine, attention, _DTYPES[fp8])
    for gpu, major in _MAJOR.items():
        if (answer := answers.get((attention, fp8, major))) is None:
            continue
        assert (block in answer["taken"]) == (block % choice.multiple == 0), gpu
        assert (block in answer["first"]) == (gpu not in choice.slow_on), gpu


def test_what_a_named_backend_takes() -> None:
    from vllm.v1.attention.backends.registry import AttentionBackendEnum  # noqa: PLC0415 - takes seconds

    assert BACKENDS.keys() <= AttentionBackendEnum.__members__.keys()
    compared = []
    for name, (attention, block) in BACKENDS.items():
        try:
            backend = AttentionBackendEnum[name].get_class()
        except (ImportError, RuntimeError):  # a build for the CPU lacks what it imports
            continue
        compared.append(name)
        kept = {(False, False): Attention.HEADS, (True, False): Attention.LATENT}
        seen = kept.get((backend.is_mla(), backend.is_sparse()), Attention.SPARSE_LATENT)
        beside = 64 if seen is Attention.SPARSE_LATENT else 1
        assert (seen, math.lcm(backend.get_preferred_block_size(16), beside)) == (attention, block), name
    assert {"FLASHMLA", "TOKENSPEED_MLA", "TRITON_MLA", "B12X"} <= {*compared}
