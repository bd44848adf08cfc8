"""How the arguments of speculative decoding are read: as JSON, as dotted fields, in their short forms."""

import pytest

from kvtier_operator.api.spec.command_line import CommandLine
from kvtier_operator.errors import InvalidInputError
from kvtier_operator.planning.arguments.speculation import Method, Speculation, speculation


def read(*words: str) -> Speculation | None:
    return speculation(CommandLine(words))


EAGLE = '{"model": "a/B-3.1-EAGLE3", "num_speculative_tokens": 3}'


@pytest.mark.parametrize(
    "extra_args",
    [
        ["--speculative-config", EAGLE],
        [f"--speculative_config={EAGLE}"],
        ["-sc", EAGLE],
        ["--speculative-conf", EAGLE],
        ["--speculative-config.model", "a/B-3.1-EAGLE3", "--speculative-config.num_speculative_tokens=3"],
        ["--speculative_config.num-speculative-tokens", "3", "--speculative-config.model", "a/B-3.1-EAGLE3"],
        ["-sc.method", "ngram", "--speculative-config.model", "a/B-3.1-EAGLE3", "--spec-tokens=3"],
        ["--spec-model=a/B-3.1-EAGLE3", "--spec-tokens", "3"],
        ["--speculative-config", '{"model": "a/B-3.1-EAGLE3"}', "--spec-tokens", "3"],
        # the last one counts, and dotted fields come after all others
        ["-sc", '{"method": "ngram"}', "-sc", EAGLE],
        ["-sc.model", "a/B-3.1-EAGLE3", "-sc.num_speculative_tokens", "3", "-sc", '{"method": "ngram"}'],
    ],
)
def test_forms(extra_args: list[str]) -> None:
    assert read(*extra_args) == Speculation(Method.EAGLE3, "a/B-3.1-EAGLE3", 3)


@pytest.mark.parametrize("extra_args", [[], ["--enforce-eager"], ["-sc", "null"], ["-sc", "{}"]])
def test_none(extra_args: list[str]) -> None:
    assert read(*extra_args) is None


@pytest.mark.parametrize(
    ("given", "method"),
    [
        ('{"method": "mtp"}', Method.MTP),
        ('{"method": "deepseek_mtp"}', Method.MTP),
        ('{"method": "qwen3_5_mtp"}', Method.MTP),
        ('{"method": "eagle", "model": "a/draft"}', Method.EAGLE),
        ('{"model": "yuhuili/EAGLE-LLaMA3-Instruct-8B"}', Method.EAGLE),
        ('{"model": "a/Qwen3-8B-DFlash-b16"}', Method.DFLASH),
        ('{"model": "a/dspark_qwen3_8b_block7"}', Method.DSPARK),
        ('{"model": "a/small"}', Method.DRAFT_MODEL),
        ('{"method": "draft_model", "model": "a/b_eagle3"}', Method.EAGLE3),  # the name wins over this method
        ('{"model": "ngram"}', Method.NGRAM),
        ('{"method": "[ngram]"}', Method.NGRAM),
        ('{"method": "suffix"}', Method.SUFFIX),
        ('{"model": "my_module.MyProposer"}', Method.CUSTOM_CLASS),
    ],
)
def test_methods(given: str, method: Method) -> None:
    found = read("-sc", given)
    assert found is not None
    assert found.method is method


def test_suffix_has_a_depth_of_its_own() -> None:
    default = read("-sc", '{"method": "suffix"}')
    deeper = read("-sc", '{"method": "suffix", "suffix_decoding_max_tree_depth": 32}')
    assert default is not None
    assert deeper is not None
    assert (default.tokens, deeper.tokens) == (24, 32)


@pytest.mark.parametrize(
    ("extra_args", "position", "words"),
    [
        (["--enforce-eager", "-sc", "{nonsense"], 1, "no JSON"),
        (["-sc", "[1]"], 0, "must be a JSON object"),
        (["-sc", "[" * 4000], 0, "no JSON"),
        (["-sc", '{"num_speculative_tokens": 3}'], 0, "needs a method or a draft model"),
        (["-sc", '{"method": "eagles"}'], 0, "'eagles' is none of vLLM's: mtp, eagle"),
        (
            ["-sc", '{"method": "mtp", "num_speculative_tokens": 0}'],
            0,
            "got 0, must be a number from 1 to 2,147,483,647",
        ),
        (["-sc", '{"method": "mtp", "num_speculative_tokens": "three"}'], 0, "got 'three'"),
        (["-sc", '{"model": 3}'], 0, "got 3, must be a string"),
        (
            ["-sc", '{"method": "mtp"}', "--spec-method", "mtp"],
            2,
            "--spec-method and --speculative-config both",
        ),
        (["--spec-tokens", "no", "--spec-method=mtp"], 0, "got 'no'"),
        (["--spec-method", "eagles", "--spec-tokens=3"], 0, "'eagles' is none of vLLM's"),
        (["-sc.method", "mtp", "-sc.num_speculative_tokens=0", "-sc.model", "a/b"], 2, "got 0"),
    ],
)
def test_what_vllm_does_not_take_is_named(extra_args: list[str], position: int, words: str) -> None:
    with pytest.raises(InvalidInputError) as caught:
        read(*extra_args)
    [problem] = caught.value.problems
    assert not caught.value.source, "whoever has the resource knows where it is from"
    assert problem.field == f"spec.engine.extraArgs[{position}]"
    assert words in problem.message
