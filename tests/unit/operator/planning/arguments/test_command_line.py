import pytest
from tests.cases.planning import resource

from kvtier_operator.api.spec.command_line import CommandLine
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
