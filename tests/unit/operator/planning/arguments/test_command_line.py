import pytest
from tests.cases.planning import resource

from kvtier_operator.api.spec.command_line import CommandLine
from kvtier_operator.errors import InvalidInputError
from kvtier_operator.planning.observed import Observed
from kvtier_operator.planning.planner import make_plan

HYBRID = "--disable-hybrid-kv-cache-manager"


@pytest.mark.parametrize(
    ("given", "on"),
    [
        ([], False),
        ([HYBRID], True),
        (["--disable_hybrid_kv_cache_manager"], True),
        (["--disable-hybrid"], True),
        ([HYBRID, "--no-disable-hybrid-kv-cache-manager"], False),
        (["--no-disable-hybrid", HYBRID], True),
    ],
    ids=str,
)
def test_a_switch_counts_as_vllm_counts_it(given: list[str], *, on: bool) -> None:
    assert CommandLine(tuple(given)).is_on(HYBRID) is on


@pytest.mark.parametrize(
    ("given", "value"),
    [
        (["--dty", "float32"], "float32"),
        (["--dtype=half", "--dt=float32"], "float32"),
        (["--dtype"], None),
        (["--dtypes", "float32"], None),
        (["dtype", "float32"], None),
    ],
    ids=str,
)
def test_a_value_is_the_last_one_under_any_name(given: list[str], value: str | None) -> None:
    assert CommandLine(tuple(given)).value("--dtype") == value


def test_a_resource_and_its_plan_read_the_words_once(monkeypatch: pytest.MonkeyPatch) -> None:
    read, init = [], CommandLine.__post_init__

    def count(line: CommandLine) -> None:
        read.append(line.words)
        init(line)

    monkeypatch.setattr(CommandLine, "__post_init__", count)
    words = ["--max-num-seqs", "64", "--hf-overrides", '{"rope_theta": 1}', "-ac.backend=FLASHINFER"]
    plan = make_plan(resource(engine={"extraArgs": words}), Observed())
    assert plan.geometry.shape.source.endswith("with --hf-overrides")
    assert read == [tuple(words)]


@pytest.mark.parametrize(
    ("text", "number"),
    [
        *(("8000", 8000), ("8_000", 8000), ("+8", 8), (" 8", 8), ("-1", -1), ("8k", 8000), ("8K", 8192)),
        *(("1.5k", 1500), ("1.5K", None), ("8x", None), ("", None), ("²", None), ("9" * 20, None)),
        *(("9" * 400 + "k", None), ("9" * 400 + "K", None)),
    ],
)
def test_a_number_is_read_as_vllm_reads_it(text: str, number: int | None) -> None:
    assert CommandLine((f"--max-num-batched-tokens={text}",)).number("--max-num-batched-tokens") == number


@pytest.mark.parametrize(
    ("words", "option", "value"),
    [
        (["-qfp8", "--seed", "1"], "--quantization", "fp8"),
        (["-q=fp8"], "--quantization", "fp8"),
        (["-q", "fp8"], "--quantization", "fp8"),
        (["-as", "4"], "--api-server-count", "4"),
        (["-dp=2"], "--data-parallel-size", "2"),
        (["-dpl=2"], "--data-parallel-size", None),
        (["-O3", "--seed", "1"], "--optimization-level", "3"),
        (["-O=2"], "--optimization-level", "2"),
    ],
    ids=str,
)
def test_a_short_name_is_its_long_one(words: list[str], option: str, value: str | None) -> None:
    assert CommandLine(tuple(words)).value(option) == value


def test_a_short_switch_is_its_long_one() -> None:
    assert CommandLine(("-ep",)).is_on("--enable-expert-parallel")


OBJECT = "--hf-overrides"


@pytest.mark.parametrize(
    ("words", "fields"),
    [
        ([f"{OBJECT}.x.b=2", f"{OBJECT}.x", '{"a": 1}'], {"x": {"b": 2, "a": 1}}),
        ([f"{OBJECT}.x=[1]", f"{OBJECT}.x=[2]", f"{OBJECT}.x+=3,4"], {"x": [1, 2, "3", "4"]}),
        ([f"{OBJECT}.x=1", f"{OBJECT}.x.y=2", f"{OBJECT}.z=5g"], {"x": {"y": 2}, "z": 5_000_000_000}),
        ([f"{OBJECT}.x=1", "--hf_overrides.y=2", "--hf-overr.z=20K"], {"z": 20_480}),
        ([OBJECT, r'{"x": 1.5k, "y": "a 2k \" 3k"}'], {"x": 1500, "y": 'a 2k " 3k'}),
        ([f"{OBJECT}.{'a.' * 2000}b=1"], None),
    ],
    ids=lambda value: str(value)[:60],
)
def test_fields_are_put_together_as_vllm_does(words: list[str], fields: dict[str, object] | None) -> None:
    line = CommandLine(tuple(words))
    if fields is None:
        with pytest.raises(InvalidInputError, match="more than 32 objects"):
            line.json_object(OBJECT)
    else:
        assert line.json_object(OBJECT) == fields
