"""Whatever is wrong with one of several files names that file, in every command that reads them."""

from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner
from tests.unit.operator.cli.test_plan import write

from kvtier_operator.cli import main
from kvtier_operator.cli.bench.job import job
from kvtier_operator.cli.doctor import doctor
from kvtier_operator.cli.plan import plan
from kvtier_operator.cli.render import render
from kvtier_operator.cli.run import run
from kvtier_operator.errors import InvalidInputError

COMMANDS = (plan, render, doctor, job)


def refusal(command: click.Command, *arguments: str) -> str:
    with pytest.raises(InvalidInputError) as refused:
        CliRunner().invoke(command, [*arguments, "--no-hub"], catch_exceptions=False)
    return str(refused.value)


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: str(command.name))
@pytest.mark.parametrize(
    ("wrong", "field"),
    [
        ({"model": "nobody/nothing"}, "spec.model.name"),
        ({"router": {"version": "0.1"}}, "spec.router.version"),
        ({"router": {"weights": {"queue": 0, "kvCacheUtilization": 0, "gpuPrefix": 0, "cpuPrefix": 0}}},
         "spec.router.weights"),
        ({"engine": {"tensorParallelSize": "two"}}, "spec.engine.tensorParallelSize"),
    ],
    ids=lambda given: given if isinstance(given, str) else "",
)  # fmt: skip
def test_a_fault_of_one_of_two(
    tmp_path: Path, command: click.Command, wrong: dict[str, Any], field: str
) -> None:
    right, faulty = write(tmp_path, "right"), write(tmp_path, "faulty", **wrong)
    shape = ("--shape", "demo") if command is job else ()
    said = refusal(command, "-f", right, "-f", faulty, *shape)
    assert said.startswith(f"{faulty}: {field}: ")
    assert "\n" not in said


@pytest.mark.parametrize("command", COMMANDS[:3], ids=lambda command: str(command.name))
def test_a_models_folder_without_a_config(tmp_path: Path, command: click.Command) -> None:
    folder = tmp_path / "model"
    folder.mkdir()
    faulty = write(tmp_path, "faulty", model=str(folder))
    said = refusal(command, "-f", write(tmp_path, "right"), "-f", faulty)
    assert said.startswith(f"{faulty}: {folder}: ")


def test_a_config_by_hand_is_named_and_so_is_whose_it_is(tmp_path: Path) -> None:
    path, config = write(tmp_path), tmp_path / "config.json"
    config.write_text('{"a": 1}', encoding="utf-8")
    assert refusal(plan, "-f", path, "--model-config", str(config)).startswith(
        f"{path}: {config}: num_hidden"
    )


def test_a_run_of_a_model_that_is_none(tmp_path: Path) -> None:
    path = write(tmp_path, tiers={"cpu": {"capacity": "1Mi"}})
    with pytest.raises(InvalidInputError) as refused:
        CliRunner().invoke(run, ["-f", path, "--model", str(tmp_path)], catch_exceptions=False)
    assert str(refused.value) == f"{path}: {tmp_path}/config.json: cannot be read: No such file or directory"


def test_a_file_of_a_folder_that_cannot_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path)

    def refuse(self: Path, mode: str) -> None:  # noqa: ARG001 - as Path has it
        raise PermissionError(13, "Permission denied", str(self))

    monkeypatch.setattr(Path, "open", refuse)
    assert refusal(plan, "-f", str(tmp_path)) == f"{path}: cannot be read: Permission denied"


def test_reports_of_several_files_say_which_is_whose(tmp_path: Path) -> None:
    one, other = write(tmp_path, "one"), write(tmp_path, "other", engine={"extraArgs": ["--port=1"]})
    said = CliRunner().invoke(plan, ["-f", one, "-f", other, "--no-hub"]).stdout
    titles = [line for line in said.splitlines() if line.startswith(("one ", "other "))]
    assert [title.split()[-1] for title in titles] == [one, other]
    alone = CliRunner().invoke(plan, ["-f", one, "--no-hub"]).stdout
    assert one not in alone


def test_a_program_that_is_no_command_line(tmp_path: Path) -> None:
    said = CliRunner().invoke(run, ["-f", write(tmp_path), "--program", "vllm 'serve"])
    assert said.exit_code == 2
    assert "'--program': \"vllm 'serve\" is no command line: No closing quotation" in said.output


def test_a_place_that_cannot_be_written_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write(tmp_path)
    taken = Path(path) / "logs"

    @click.command()
    def writes() -> None:
        taken.mkdir(parents=True)

    monkeypatch.setattr(main, "kvtier", writes)
    monkeypatch.setattr("signal.signal", lambda *_: None)  # the test's own stays
    monkeypatch.setattr("sys.argv", ["kvtier"])
    with pytest.raises(SystemExit) as ended:
        main.main()
    assert ended.value.code == main.EXIT_FAILED
    assert capsys.readouterr().err == f"kvtier: {taken}: Not a directory\n"
