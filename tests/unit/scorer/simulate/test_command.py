import json
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from kvtier_scorer.simulate.command import simulate
from kvtier_scorer.simulate.policies import POLICIES

SMALL = [
    "--trace", "high-cache", "--num-groups", "4", "--prompts-per-group", "3", "--system-prompt-len", "2000",
    "--question-len", "50", "--output-len", "20", "--concurrency", "4", "--pods", "2",
]  # fmt: skip
TRACE: list[dict[str, object]] = [
    {"kvtier_trace": 1},
    *(
        {"time_s": number, "model": "m", "prompt": [["s", 320], [number, 16]], "output_tokens": 4}
        for number in range(8)
    ),
]
MOONCAKE: list[dict[str, object]] = [
    {"timestamp": 1000 * number, "input_length": 600, "output_length": 5, "hash_ids": [1, number + 2]}
    for number in range(6)
]


def run(*arguments: str) -> Result:
    return CliRunner().invoke(simulate, arguments)


def ran(*arguments: str) -> str:
    result = run(*arguments)
    assert result.exit_code == 0, result.output
    return result.stdout


def write(path: Path, lines: list[dict[str, object]]) -> str:
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return str(path)


def test_a_table_shows_every_policy_in_80_columns() -> None:
    lines = ran(*SMALL).splitlines()
    assert lines[0] == "high-cache: 12 requests, 24,600 prompt tokens, 4 under way"
    table = lines[1 : lines.index("round-robin: one pod after another")]
    assert max(map(len, table)) <= 80
    assert not any("…" in line for line in lines)
    names = [line.split()[0] for line in table if "%" in line]
    assert names == list(POLICIES)
    about = lines[-len(POLICIES) :]
    assert [line.split(":")[0] for line in about] == list(POLICIES)


def test_no_figure_is_cut_off_where_the_table_is_wider_than_the_screen() -> None:
    narrow = CliRunner().invoke(simulate, [*SMALL], env={"COLUMNS": "40"})
    assert narrow.stdout.split() == ran(*SMALL).split()


def test_hit_rates_of_tenants_are_below_the_table_however_many_they_are(tmp_path: Path) -> None:
    names = [f"team-{number}-{'x' * 40}" for number in range(4)]
    lines = [{**TRACE[1], "time_s": at, "hints": {"share": name}} for at, name in enumerate(names)]
    file = write(tmp_path / "t.jsonl", [TRACE[0], *lines, *lines])
    printed = ran("--trace", file, "--pods", "2", "--policy", "round-robin", "--hints").splitlines()
    for run in ("none", "true"):
        [line] = [line for line in printed if line.startswith(f"{run}: hit rate of ")]
        assert all(f"{name} " in line for name in names)


def test_a_line_says_that_requests_come_faster_than_they_are_served(tmp_path: Path) -> None:
    at_once = [{**TRACE[1], "time_s": 0.0, "prompt": [[number, 30_000]]} for number in range(20)]
    slowly = [{**line, "time_s": 60.0 * number} for number, line in enumerate(at_once)]
    asked = ("--pods", "1", "--policy", "round-robin", "--trace")
    said = "requests arrive faster than the pods serve with round-robin"
    assert said in ran(*asked, write(tmp_path / "fast.jsonl", [TRACE[0], *at_once]))
    assert said not in ran(*asked, write(tmp_path / "slow.jsonl", [TRACE[0], *slowly]))
    assert said not in ran(*SMALL)


def test_only_the_policies_asked_for_are_run_each_once() -> None:
    found = json.loads(
        ran(*SMALL, "--policy", "kvtier", "--policy", "random", "--policy", "kvtier", "-o", "json")
    )
    assert list(found["simulate"]["policies"]) == ["kvtier", "random"]


def test_json_has_every_figure_and_where_a_policy_is_from(tmp_path: Path) -> None:
    out = tmp_path / "made" / "out.json"
    printed = ran(*SMALL, "-o", "json", "--write", str(out))
    assert printed == out.read_text()
    found = json.loads(printed)["simulate"]
    assert (found["trace"], found["requests"], found["prompt_tokens"]) == ("high-cache", 12, 24_600)
    assert list(found["policies"]) == list(POLICIES)
    for name, each in found["policies"].items():
        assert each["about"] == POLICIES[name].about
        assert each["source"] == (POLICIES[name].source or None)
        assert each["hit_rate"] == pytest.approx(sum(each["tier_hit_rate"].values()))
        assert 0 < each["ttft_mean_s"] <= each["e2e_mean_s"]


def test_the_same_command_prints_the_same_and_another_seed_something_else() -> None:
    assert ran(*SMALL) == ran(*SMALL)
    assert ran(*SMALL) != ran(*SMALL, "--seed", "1")


def test_tiers_that_are_not_there_have_no_column() -> None:
    assert "CPU" in ran(*SMALL, "--gpu-tokens", "3000", "--policy", "kvtier")
    assert "from\nCPU" not in ran(*SMALL, "--cpu", "0", "--policy", "kvtier")
    found = json.loads(
        ran(*SMALL, "--cpu", "0", "--gpu-tokens", "3000", "-o", "json", "--policy", "round-robin")
    )
    assert found["simulate"]["policies"]["round-robin"]["tier_hit_rate"]["cpu"] == 0


def test_a_disk_gives_what_the_device_let_go() -> None:
    found = json.loads(
        ran(
            *SMALL, "--cpu", "0", "--disk", "10Gi", "--gpu-tokens", "3000", "-o", "json", "--policy", "kvtier"
        )
    )
    assert found["simulate"]["policies"]["kvtier"]["tier_hit_rate"]["disk"] > 0


@pytest.mark.parametrize("lines", [TRACE, MOONCAKE])
def test_files_of_both_formats_are_replayed(lines: list[dict[str, object]], tmp_path: Path) -> None:
    file = write(tmp_path / "trace[bold].jsonl", lines)
    printed = ran("--trace", file, "--policy", "kvtier", "--policy", "round-robin", "--pods", "2")
    assert printed.startswith(f"{file}: ")
    assert "over" in printed.splitlines()[0]


def test_a_store_gives_what_another_pod_computed() -> None:
    arguments = (*SMALL, "--pods", "4", "--concurrency", "2", "--policy", "round-robin", "-o", "json")

    def from_the_store(*more: str) -> float:
        rates: dict[str, float] = json.loads(ran(*arguments, *more))["simulate"]["policies"]["round-robin"][
            "tier_hit_rate"
        ]
        return rates["remote"]

    wide = ("--prompts-per-group", "12", "--remote", "1Ti")
    assert from_the_store(*wide[:2]) == 0
    assert from_the_store(*wide, "--remote-bandwidth", "46G") > 0
    assert from_the_store(*wide, "--remote-bandwidth", "1M") == 0
    assert from_the_store(*wide, "--store-bandwidth", "1M") == 0


def test_what_hints_would_give_is_shown_for_one_policy_beside_the_optimum() -> None:
    asked = (
        "--trace",
        "agents",
        "--sessions",
        "8",
        "--requests",
        "120",
        "--pods",
        "1",
        "--gpu-tokens",
        "40000",
    )
    arguments = (*asked, "--cpu", "20Gi", "--hints", "--policy", "round-robin")
    found = json.loads(ran(*arguments, "-o", "json"))["simulate"]
    assert list(found["hints"]) == ["none", "true", "50% off", "30% false", "all false"]
    best = max(each["hit_rate"] for each in found["hints"].values())
    assert found["hints"]["none"]["hit_rate"] < best <= found["optimum_hit_rate"]
    assert "optimum: " in ran(*arguments)


def test_a_tenants_guaranteed_part_shows_in_its_own_hit_rate() -> None:
    asked = (
        "--trace",
        "tenants",
        "--sessions",
        "4",
        "--requests",
        "150",
        "--pods",
        "1",
        "--policy",
        "random",
    )
    sizes = ("--gpu-tokens", "80000", "--cpu", "40Gi")

    def of_the_steady(*more: str) -> float:
        found = json.loads(ran(*asked, *sizes, *more, "-o", "json"))["simulate"]["policies"]["random"]
        rate: float = found["tenant_hit_rate"]["steady"]
        return rate

    assert of_the_steady("--tenant", "steady:80%:100%") > of_the_steady()
    assert "steady" in ran(*asked, *sizes)


def test_weights_change_what_kvtier_does() -> None:
    prefix, load = (
        json.loads(ran(*SMALL, "--policy", "kvtier", "-o", "json", "--weights", weights))["simulate"]
        for weights in ("0:0:1:1", "1:0:0:0")
    )
    assert prefix["policies"]["kvtier"]["hit_rate"] > load["policies"]["kvtier"]["hit_rate"]


def test_the_other_pickers_take_weights_only_when_told_to() -> None:
    base = [*SMALL, "--policy", "gaie-1.4-sized", "-o", "json", "--weights", "1:0:0:0"]
    kept, same = (json.loads(ran(*base, *more))["simulate"]["policies"] for more in ([], ["--same-weights"]))
    assert kept["gaie-1.4-sized"]["hit_rate"] > same["gaie-1.4-sized"]["hit_rate"]


BAD = [
    (
        ["--trace", "missing.jsonl"],
        "missing.jsonl: there is no such file; give the path of a trace, or high-cache, low-cache, agents or",
    ),
    ([*SMALL, "--policy", "best"], "--policy: 'best' is not known; known are round-robin, random"),
    ([*SMALL, "--preset", "tpu"], "--preset: 'tpu' is not known; known are qwen3-32b-2xh100"),
    ([*SMALL, "--cpu", "lots"], "--cpu: must be a size of 0 or more such as 100Gi, not 'lots'"),
    ([*SMALL, "--disk", "-1Gi"], "--disk: must be a size of 0 or more such as 100Gi, not '-1Gi'"),
    ([*SMALL, "--disk", "9" * 25 + "Ti"], "--disk: must be at most"),
    ([*SMALL, "--remote", "1Ti", "--remote-bandwidth", "0"], "--remote-bandwidth: must be more than 0"),
    ([*SMALL, "--hints"], "high-cache: has no times, so no pauses are known; give a trace with time_s"),
    ([*SMALL, "--sessions", "4"], "--sessions: shapes a generated trace; leave it out with a file, or use"),
    ([*SMALL, "--retained", "lots"], "--retained: must be a part from 0% to 100% such as 30%, not 'lots'"),
    ([*SMALL, "--retained", "91%"], "--retained: must be at most 90%, not '91%'"),
    ([*SMALL, "--retained", "40%"], "--retained: no request of high-cache says a hint; give --hints too"),
    ([*SMALL, "--hint-error", "40%"], "--hint-error: is of what --hints shows; give --hints too"),
    ([*SMALL, "--hint-false", "40%"], "--hint-false: is of what --hints shows; give --hints too"),
    (
        ["--trace", "tenants", "--requests", "300", "--tenant", "nosuch:10%:50%"],
        "--tenant: no request of tenants is of 'nosuch'; tenants there are steady",
    ),
    ([*SMALL, "--tenant", "a:10%:50%"], "--tenant: no request of high-cache is of 'a'; its requests say no"),
    ([*SMALL, "--tenant", "a:70%:50%"], "--tenant: guaranteed and most must be parts from 0% to 100%"),
    ([*SMALL, "--tenant", "a"], "--tenant: must be NAME:GUARANTEED:MOST such as team-a:20%:50%, not 'a'"),
    (
        [*SMALL, "--tenant", "a:70%:100%", "--tenant", "b:50%:100%"],
        "--tenant: 120% are guaranteed in all, which is more than there is",
    ),
    ([*SMALL, "--store-bandwidth", "1G"], "--store-bandwidth: is of a store; give --remote its size"),
    ([*SMALL, "--weights", "2:2:1"], "--weights: must be whole numbers queue:utilization:gpu:cpu[:disk]"),
    ([*SMALL, "--weights", "2:2:1:-1"], "--weights: must be whole numbers queue:utilization:gpu:cpu[:disk]"),
    ([*SMALL, "--weights", "2:2:1:\u00b2"], "--weights: must be whole numbers"),
    ([*SMALL, "--weights", "0:0:0:0"], "--weights: are all 0; give one a weight"),
    ([*SMALL, "--weights", "0:0:0:0:1"], "--weights: "),
    ([*SMALL, "--weights", "99999999:1:1:1"], "--weights: must be at most 1,000,000 each"),
    ([*SMALL, "--gpu-tokens", "1000"], "gpu_blocks: request 1 of the trace needs 130 blocks"),
    ([*SMALL, "--gpu-tokens", "1"], "gpu_blocks: must be more than 0, not 0"),
    (
        [*SMALL, "--num-groups", "1000000", "--prompts-per-group", "9"],
        "high-cache: 9,000,000 requests are too many",
    ),
    ([*SMALL, "--write", "/proc/none/x.json"], "/proc/none"),
]


@pytest.mark.parametrize(("arguments", "message"), BAD)
def test_bad_input_is_one_line_and_exit_status_2(arguments: list[str], message: str) -> None:
    result = run(*arguments)
    assert result.exit_code == 2
    assert result.stderr.startswith(f"Error: {message}")
    assert result.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("--rate", "nan"), ("--rate", "0"), ("--rate", "inf"), ("--scrape-interval", "nan"),
        ("--scrape-interval", "0"), ("--pods", "0"), ("--pods", "5000"), ("--seed", "-1"),
        ("--num-groups", "x"),
        ("--system-prompt-len", "100000000000"),
    ],
)  # fmt: skip
def test_options_out_of_their_range_are_refused(option: str, value: str) -> None:
    result = run(*SMALL, option, value)
    assert result.exit_code == 2
    assert option in result.stderr
    assert "Traceback" not in result.stderr


def test_a_wrong_line_of_a_file_is_named(tmp_path: Path) -> None:
    file = write(tmp_path / "t.jsonl", [*TRACE[:3], {"time_s": "now"}])
    result = run("--trace", file)
    assert result.exit_code == 2
    assert result.stderr == f"Error: {file}:4: model: must be a name, not nothing\n"


def test_a_shape_is_for_generated_traces(tmp_path: Path) -> None:
    file = write(tmp_path / "t.jsonl", TRACE)
    result = run("--trace", file, "--num-groups", "3")
    assert result.exit_code == 2
    assert result.stderr.startswith("Error: --num-groups: shapes a generated trace; leave it out with a file")


def test_the_command_line_loads_nothing_heavy_until_it_runs() -> None:
    program = (
        "import sys, kvtier_scorer.simulate.command\n"
        "print([name for name in ('numpy', 'numba', 'rich') if name in sys.modules])"
    )
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, check=True)  # noqa: S603 - ours
    assert done.stdout.strip() == "[]"


def test_kvtier_has_the_command() -> None:
    found = [each.value for each in metadata.entry_points(group="kvtier.commands") if each.name == "simulate"]
    assert found == ["kvtier_scorer.simulate.command:simulate"]
