"""Values with which vLLM's parser is content and its configuration or a loader is not."""

from typing import Any, Final

import pytest
from tests.cases.checks import PASS, REJECT, WARN, says, verdict
from tests.cases.planning import resource

from kvtier_operator.planning.checks.argument_values import argument_values
from kvtier_operator.planning.checks.arguments import known_arguments
from kvtier_operator.planning.checks.capacity import device_cache

MOE: Final = "Qwen/Qwen3-30B-A3B"
BALANCED: Final = ("--enable-expert-parallel", "--enable-eplb")
COPIES: Final = "--eplb-config.num_redundant_experts"
GROUPS: Final = ("--offload-group-size", "8")
STREAMED: Final = ("--load-format", "runai_streamer", "--model-loader-extra-config.memory_limit")
ENCODED: Final = "--ec-transfer-config.ec_connector_extra_config.ec_cpu_bytes"
TWO: Final = {"tensorParallelSize": 2}


def check(words: tuple[str, ...], model: str = MOE, **engine: Any) -> Any:  # noqa: ANN401 - as in YAML
    return verdict(argument_values, resource(model, engine={"extraArgs": [*words], **engine}))


@pytest.mark.parametrize(
    ("words", "engine"),
    [
        ((*BALANCED, f"{COPIES}=2"), TWO),
        (("--no-enable-eplb", f"{COPIES}=0"), {}),
        ((*BALANCED, "--eplb-config", '{"window_size": 1k, "num_redundant_experts": 128}'), TWO),
        ((*GROUPS, "--offload-num-in-group", "8"), {}),
        (("--offload-prefetch-step", "0"), {}),
        (("--offload-backend=uva", "--cpu-offload-gb=1"), {}),
        ((*STREAMED, "-1"), {}),
        ((*STREAMED, "5g"), {}),
        (("--load-format=safetensors", STREAMED[2], "-2"), {}),
        (("--load-format=Runai_Streamer",), {}),
        (("--max-num-batched-tokens=128", "--max-num-seqs=128"), {}),
        (("--max-num-batched-tokens=128",), {}),
        (("--max-num-seqs=40960",), {}),  # as a step has, where it holds the longest sequence
        ((f"{ENCODED}=1e10",), {}),
        (("--mm-ipc-gpu-memory-gb=10",), {"kvCacheMemory": "10Gi"}),  # of a model that takes no media
    ],
    ids=str,
)
def test_values_that_vllm_starts_with(words: tuple[str, ...], engine: dict[str, Any]) -> None:
    says(check(words, **engine), PASS, "Passed")


@pytest.mark.parametrize(
    ("words", "engine", "position", "said"),
    [
        (("--enable-eplb",), TWO, 0, "--enable-eplb without --enable-expert-parallel"),
        (BALANCED, {}, 1, "--enable-eplb on one GPU"),
        (BALANCED, {"device": "cpu", **TWO}, 1, "--enable-eplb on device cpu"),
        ((f"{COPIES}=64",), TWO, 0, "num_redundant_experts 64 of --eplb-config without --enable-eplb"),
        ((*BALANCED, f"{COPIES}=-3"), TWO, 2, "takes a whole number, at least 0"),
        ((*BALANCED, f"{COPIES}=1e999"), TWO, 2, "takes a whole number, at least 0"),
        (
            (*BALANCED, f"{COPIES}=1"),
            TWO,
            2,
            "over 2 ranks: vLLM ends at start; give num_redundant_experts 2",
        ),
        ((*GROUPS, "--offload-num-in-group", "9"), {}, 2, "give 8 or less"),
        ((*GROUPS, "--offload-prefetch-step=0"), {}, 2, "give 1 or more"),
        (("--offload-backend", "prefetch"), {}, 0, "prefetch without --offload-group-size"),
        ((*STREAMED, "-2"), {}, 2, "memory_limit -2"),
        ((*STREAMED, "5e9"), {}, 2, "memory_limit 5000000000.0"),
        (
            ("--max-num-batched-tokens=128", "--max-num-seqs=512"),
            {},
            0,
            "128 is less than --max-num-seqs 512",
        ),
        (("--max-num-seqs=40961",), {}, 0, "--max-num-batched-tokens, which by default is 40,960 at most"),
        ((f"{ENCODED}=true",), {}, 0, "ec_cpu_bytes true"),
    ],
    ids=str,
)
def test_values_that_vllm_ends_at(
    words: tuple[str, ...], engine: dict[str, Any], position: int, said: str
) -> None:
    result = check(words, **engine)
    says(result, REJECT, "ValueNotTaken", said)
    assert result.field == f"spec.engine.extraArgs[{position}]"


def test_room_for_media_that_leaves_no_cache() -> None:
    model = "Qwen/Qwen3.5-35B-A3B"
    says(
        check(("--mm-ipc-gpu-memory-gb=10",), model, kvCacheMemory="10Gi"), REJECT, "ValueNotTaken", "10 GiB"
    )
    says(check(("--mm-ipc-gpu-memory-gb=9",), model, kvCacheMemory="10Gi"), PASS, "Passed")
    says(check(("--mm-ipc-gpu-memory-gb=90",), model, gpu="h100"), REJECT, "ValueNotTaken", "90 GiB")


def test_room_for_media_that_leaves_little() -> None:
    words = ["--mm-ipc-gpu-memory-gb=20"]
    one = resource("google/gemma-3-27b-it", engine={"gpu": "h100", "extraArgs": words})
    says(verdict(argument_values, one), PASS, "Passed")
    result = verdict(device_cache, one)
    says(result, WARN, "SequenceMayNotFit", "beside 20 GiB of --mm-ipc-gpu-memory-gb, and leave ")


def test_a_format_that_only_a_plugin_loads() -> None:
    result = check(("--load-format", "runai"))
    says(result, WARN, "LoadFormatNotKnown", "no loader for --load-format runai", "give runai_streamer")


@pytest.mark.parametrize(
    "word",
    [
        *(f"--cpu-offload-gb={value}" for value in ("inf", "nan", "-3")),
        *(f"--mm-processor-cache-gb={value}" for value in ("inf", "nan", "-1")),
        *(f"--mm-ipc-gpu-memory-gb={value}" for value in ("inf", "nan", "-1")),
        *("--offload-group-size=-1", "--offload-num-in-group=0", "--offload-prefetch-step=-1"),
    ],
)
def test_amounts_are_finite_and_no_less_than_vllm_takes(word: str) -> None:
    one = resource(MOE, engine={"extraArgs": [word]})
    says(
        verdict(known_arguments, one), REJECT, "ArgumentNotKnown", word.partition("=")[0], "number, at least"
    )
