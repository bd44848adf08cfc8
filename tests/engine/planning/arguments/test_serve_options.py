"""What is refused of extraArgs before an engine starts is what vLLM's own parser refuses, and no more."""

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, Final, NoReturn

import pytest
from tests.cases.checks import PASS, verdict
from tests.cases.planning import resource
from vllm import EngineArgs

from kvtier_connector.bench.vllm_arguments import serve_parser
from kvtier_operator.api.spec.command_line import CommandLine
from kvtier_operator.generate.engine_data.serve_options import (
    ENVIRONMENT,
    SERVE_OPTIONS,
    options_of,
    this_minor,
    variables_read,
)
from kvtier_operator.generate.engine_data.upstream import options
from kvtier_operator.generate.files import ROOT
from kvtier_operator.planning.arguments.effects import effect_of
from kvtier_operator.planning.arguments.serve_options import (
    Bound,
    Count,
    Option,
    Takes,
    faults_of,
    serve_options,
)
from kvtier_operator.planning.checks.argument_values import argument_values

pytestmark = [pytest.mark.engine, pytest.mark.filterwarnings("ignore")]
VALUES: Final = (
    *("3", "-1", "0.5", "8k", "1.5K", "auto", "None", "", "{}", '{"a": 1}', "{nonsense", "some text", "a"),
)
FILE: Final = "--config"  # vLLM reads it first
WITHIN: Final = frozenset({Takes.JSON, Takes.OBJECT, Takes.JSON_OR_TEXT})
"""Of these only the outermost form is looked at, and so it is of what names an adapter."""
LORA: Final = "--lora-modules"
MANY: Final = 300
SERVERS: Final = frozenset({"--api-server-count", "--sse-keep-alive-interval"})
"""Their bounds are not the engine's."""
IMAGES: Final = ("--mm-", "--video-pruning-rate")
"""Beginnings of options that an engine of text alone passes over."""


@cache
def parser() -> Any:  # noqa: ANN401 - vLLM has no types
    """vLLM's, without its usage, which takes longer than all else."""
    made = serve_parser()
    made.error = _refuse
    return made


def takes(words: list[str]) -> bool:
    """Whether vLLM's parser does."""
    try:
        parser().parse_args(["model", *words])
    except (SystemExit, ValueError, IndexError, KeyError, TypeError, AttributeError):
        return False
    return True


def _refuse(message: str) -> NoReturn:
    raise ValueError(message)


def test_the_file_is_up_to_date() -> None:
    written = json.loads(Path(ROOT, SERVE_OPTIONS).read_text(encoding="utf-8"))
    assert {**written["both"], **written[this_minor()]} == options_of(parser())
    variables = written[ENVIRONMENT]
    assert {*variables["both"], *variables[this_minor()]} == variables_read()


def test_names_of_one_option_are_one_in_the_table_of_effects() -> None:
    names: dict[int, set[str]] = {}
    for name, action in options(parser()).items():
        names.setdefault(id(action), set()).add(name)
    assert len(names) > MANY
    for group in names.values():
        arguments = [CommandLine((name,)).arguments[0] for name in group - {"-h", "--help"}]
        assert len({effect_of(argument) for argument in arguments}) <= 1, group


def starts(model: Path, *words: str) -> bool:
    """Whether vLLM makes an engine's configuration of them."""
    parsed = parser().parse_args(["--skip-tokenizer-init", *words])
    parsed.model = str(model)
    try:
        EngineArgs.from_cli_args(parsed).create_engine_config()
    except ValueError:
        return False
    return True


def beyond(bound: Bound, limit: float) -> float:
    """The nearest whole number that does not keep within a bound."""
    return limit + {Bound.AT_LEAST: -1, Bound.ABOVE: 0, Bound.AT_MOST: 1, Bound.BELOW: 0}[bound]


def test_every_bound_is_one_that_vllm_keeps(model_folder: Callable[..., Path]) -> None:
    options = serve_options(int(this_minor()))
    cases = [
        f"{name}={beyond(*bound):g}"
        for name, option in options.items()
        for bound in option.bounds
        if name.startswith("--") and name not in SERVERS and not name.startswith(IMAGES)
    ]
    model = model_folder()
    assert starts(model)
    assert len(cases) > 40
    assert [word for word in cases if not takes([word])] == []
    assert [word for word in cases if starts(model, word)] == []
    assert [word for word in cases if not [*faults_of([word], options)]] == []


@pytest.mark.parametrize(("values", "is_good"), [(["-1", "8"], True), (["8", "-1"], False)])
def test_of_an_option_that_is_given_twice_the_last_one_counts(
    values: list[str], is_good: bool, model_folder: Callable[..., Path]
) -> None:
    words = [word for value in values for word in ("--max-num-seqs", value)]
    assert starts(model_folder(), *words) is is_good
    assert (not [*faults_of(words, serve_options(int(this_minor())))]) is is_good


OBJECT: Final = "--hf-overrides"


@pytest.mark.parametrize(
    "words",
    [
        [f"{OBJECT}.x.b=2", f"{OBJECT}.x", '{"a": 1}'],
        [f"{OBJECT}.x=[1]", f"{OBJECT}.x=[2]", f"{OBJECT}.x+=3,4"],
        [f"{OBJECT}.x=1", f"{OBJECT}.x.y=2", f"{OBJECT}.z=5g"],
        [f"{OBJECT}.x=1", "--hf_overrides.y=2", "--hf-overr.z=20K", "-O3"],
        [OBJECT, '{"x": 1}', f"{OBJECT}.y={{}}", f"{OBJECT}.y.z=1_000"],
    ],
    ids=str,
)
def test_fields_are_put_together_as_vllm_does(words: list[str]) -> None:
    parsed = parser().parse_args(["model", *words])
    assert CommandLine(tuple(words)).json_object(OBJECT) == parsed.hf_overrides


@pytest.mark.parametrize("words", [["-qfp8"], ["-q=fp8"], ["-q", "fp8"], ["-qfp8=x"], ["-ep", "-q", "fp8"]])
def test_short_names_are_read_as_vllm_does(words: list[str]) -> None:
    parsed, line = parser().parse_args(["model", *words]), CommandLine(tuple(words))
    assert line.value("--quantization") == parsed.quantization
    assert line.is_on("--enable-expert-parallel") is bool(parsed.enable_expert_parallel)


@pytest.mark.parametrize(
    ("words", "is_good"),
    [
        (["--offload-group-size=8", "--offload-num-in-group=8"], True),
        (["--offload-group-size=8", "--offload-num-in-group=9"], False),
        (["--offload-group-size=8", "--offload-prefetch-step=0"], False),
        (["--offload-prefetch-step=0"], True),
        (["--offload-backend=prefetch"], False),
        (["--max-num-batched-tokens=128", "--max-num-seqs=128"], True),
        (["--max-num-batched-tokens=128", "--max-num-seqs=129"], False),
        (["--max-num-seqs=40961"], False),
        (["--eplb-config.num_redundant_experts=64"], False),
        (["--enable-eplb"], False),
    ],
    ids=str,
)
def test_values_are_refused_where_vllm_ends_at_them(
    words: list[str], is_good: bool, model_folder: Callable[..., Path]
) -> None:
    cpu = {"device": "cpu", "extraArgs": words}
    assert (verdict(argument_values, resource("Qwen/Qwen3-32B", engine=cpu)).outcome is PASS) is is_good
    assert starts(model_folder(), *words) is is_good


def of_the_parser() -> dict[str, Option]:
    """The options, as far as the parser looks at them: bounds are the configuration's."""
    options = serve_options(int(this_minor()))
    return {name: replace(option, bounds=()) for name, option in options.items()}


def ways(name: str, option: Option) -> Iterator[list[str]]:
    """How one may write an option, well and badly."""
    yield from ([name], [f"{name}=1"], [name, "stray"], [f"{name} 1"], [name, name], [f"{name}x", "1"])
    underscores = name.replace("-", "_").replace("__", "--", 1)
    for value in (*VALUES, *option.choices[:1]):
        yield from ([name, value], [f"{name}={value}"], [f"{underscores}={value}"])
    yield from ([name[:-1], "1"], [name, "1", "2"], ["--", name, "1"], [name, "--", "1"], [name, "-x"])
    yield from ([f"{name}.a", "1"], [f"{name}.a.b=1"], [f"{name}.a+=1"], [f"{name}.a"])


def test_every_option_is_refused_and_taken_as_vllm_does() -> None:
    options = of_the_parser()
    differs = []
    for name, option in options.items():
        if name == FILE or option.count is Count.ONE_OR_NONE:
            continue
        for words in ways(name, option):
            theirs, ours = takes(words), not [*faults_of(words, options)]
            if theirs != ours and not (ours and (option.takes in WITHIN or name == LORA)):
                differs.append((words, theirs))
    assert not differs


@pytest.mark.parametrize(
    "words",
    [
        *([], ["stray"], [""], ["-1"], ["--"], ["-"], ["-O"], ["-O3"], ["-O=2"], ["-O", "1"], ["-O", "9"]),
        *(["-O", "x"], ["--seed", "-1"], ["--seed=-1"], ["--watermark", "-0.5"], ["--watermark", ".5"]),
        *(["-n2"], ["-tp=2"], ["--enable-lora", "--max-loras", "2"], ["--model-impl", "--seed", "1"]),
        *(["--foo"], ["--foo", "1"], ["-x"], ["--max-num", "1"], ["--api-key", "a", "b"], ["--api-key"]),
        *(["--hf-token"], ["--hf-token", "a"], ["--hf-token", "a", "b"], ["-sc.method=mtp", "--seed", "1"]),
        *(["--limit-mm-per-prompt.image", "2"], ["--enforce-eager.a=1"], ["--seed.a=1"]),
        *(["--collect-detailed-traces", "model", "worker"], ["--collect-detailed-traces", "none"]),
        *(["--cudagraph-capture-sizes", "1", "2"], ["--cudagraph-capture-sizes", "1", "x"]),
    ],
    ids=" ".join,
)
def test_words(words: list[str]) -> None:
    assert takes(words) == (not [*faults_of(words, of_the_parser())])
