import pytest
from tests.cases.checks import PASS, REJECT, WARN, says, verdict
from tests.cases.planning import resource

from kvtier_operator.api.resource import KVCacheTier
from kvtier_operator.planning.checks.arguments import known_arguments

OLDER, NEWER = "vllm/vllm-openai:v0.32.0", "vllm/vllm-openai:v0.33.0"


def one(*words: str, image: str | None = None) -> KVCacheTier:
    return resource(engine={"extraArgs": [*words]} | ({"image": image} if image else {}))


@pytest.mark.parametrize(
    ("words", "position", "said"),
    [
        (["--max-num-seqs 256"], 0, "make it two, '--max-num-seqs' and '256'"),
        (["--max-num-seqs=1 --seed 2"], 0, "vLLM takes a whole number"),
        (["--foo-bar"], 0, "vLLM has no option --foo-bar: remove it"),
        (["--swap-space", "4"], 0, "vLLM has no option --swap-space: remove it"),
        (["--max-num-seq=4", "--max-num-sequences", "4"], 1, "give --max-num-seqs, if that is meant"),
        (
            ["--dtype", "float8"],
            1,
            "--dtype float8: vLLM takes auto, bfloat16,",
        ),
        (["--max-num-batched-tokens", "abc"], 1, "vLLM takes a whole number, or one such as 8k"),
        (["--cudagraph-capture-sizes", "1", "2", "x"], 3, "--cudagraph-capture-sizes x: vLLM takes a whole"),
        (["--limit-mm-per-prompt={"], 0, "vLLM takes JSON"),
        (["--seed", "1", "Qwen/other"], 2, "'Qwen/other' belongs to no option"),
        ([""], 0, "'' belongs to no option"),
        (["--seed"], 0, "--seed needs a value: a whole number"),
        (["--seed", "--enforce-eager"], 0, "--seed needs a value"),
        (["--enforce-eager=1"], 0, "--enforce-eager takes no value"),
        (["--enforce-eager.a=1"], 0, "--enforce-eager has no fields"),
        (["--max-num", "4"], 0, "--max-num may be --max-num-active-seqs, --max-num-batched-tokens,"),
    ],
    ids=str,
)
@pytest.mark.parametrize("image", [None, OLDER, NEWER])
def test_words_that_vllm_refuses(words: list[str], position: int, said: str, image: str | None) -> None:
    result = verdict(known_arguments, one(*words, image=image))
    says(result, REJECT, "ArgumentNotKnown", said)
    assert result.field == f"spec.engine.extraArgs[{position}]"
    assert "extraArgs" not in result.message, "one fault is told once"


@pytest.mark.parametrize(
    "words",
    [
        *([], ["--enforce-eager"], ["--no-enforce-eager"], ["--max_num_seqs=4"], ["--max-num-se", "4"]),
        *(["--max-num-batched-tokens", "8k"], ["--max-num-batched-tokens=1.5k"], ["--seed", "-1"]),
        *(["-O3"], ["-O", "2"], ["-cc.mode=3"], ["-cc.pass_config.enable_fusion", "true"], ["-sc", "null"]),
        *(["--moe-backend", "Flashinfer-TRTLLM"], ["--quantization", "None"], ["--middleware=a"]),
        *(["--api-key", "a", "b", "--seed=1"], ["--hf-token"], ["--hf-token", "a"], ["-dc", "{}"]),
        *(["--chat-template", "two words"], ["-cc", '{"a": 8k}'], ["--hf-overrides.a+=1,2"]),
    ],
    ids=str,
)
def test_words_that_vllm_takes(words: list[str]) -> None:
    says(verdict(known_arguments, one(*words)), PASS, "Passed")


@pytest.mark.parametrize(
    ("words", "image", "lacks"),
    [
        (["--monokernel"], OLDER, 32),
        (["--disable-lora"], OLDER, 32),
        (["--sleep-mode-backend=a"], OLDER, 32),
        (["--spec-method", "medusa"], NEWER, 33),
    ],
    ids=str,
)
def test_what_one_minor_has(words: list[str], image: str, lacks: int) -> None:
    says(verdict(known_arguments, one(*words)), WARN, "ArgumentNotKnown", f"in vLLM 0.{lacks}, ")
    says(verdict(known_arguments, one(*words, image=image)), REJECT, "ArgumentNotKnown")
    other = NEWER if image == OLDER else OLDER
    says(verdict(known_arguments, one(*words, image=other)), PASS, "Passed")


def test_words_of_which_no_minor_has_all() -> None:
    result = verdict(known_arguments, one("--monokernel", "--spec-method=medusa"))
    says(result, REJECT, "ArgumentNotKnown", "in vLLM 0.32, ", "in vLLM 0.33, ")


def test_all_of_them_are_told_at_once() -> None:
    result = verdict(known_arguments, one("--foo", "1", "--seed=x", "--bar"))
    says(result, REJECT, "ArgumentNotKnown", "--foo", "extraArgs[2]: --seed x", "extraArgs[3]: vLLM has")


def test_an_image_of_ones_own_may_know_more() -> None:
    result = verdict(known_arguments, one("--of-a-plugin", image="r.example/fork:7"))
    says(result, WARN, "ArgumentNotKnown", "no option --of-a-plugin", "by itself kvtier passes them on")
