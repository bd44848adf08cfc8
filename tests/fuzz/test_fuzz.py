"""What fuzzers have found, again; and that they would find it."""

import subprocess
import sys
import time
from importlib import import_module
from pathlib import Path

import pytest
from click.testing import CliRunner
from tests.fuzz import planted
from tests.fuzz.__main__ import main
from tests.fuzz.minimise import minimise
from tests.fuzz.targets import TARGETS
from tests.fuzz.timed import TooSlowError, run_timed

CORPUS = Path(__file__).parent / "corpus"
ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("name", TARGETS)
def test_the_corpus_is_taken_without_a_fault(name: str) -> None:
    module = import_module(f"tests.fuzz.targets.{name}")
    kept = sorted((CORPUS / name).iterdir())
    assert kept, "an empty corpus shows nothing"
    assert sum(file.stat().st_size for file in kept) < 8 << 10, "few KB a target"
    for data in (b"", *module.SEEDS, *(file.read_bytes() for file in kept)):
        module.run(data)


def test_a_planted_fault_is_found_and_minimised(tmp_path: Path) -> None:
    pytest.importorskip("atheris")
    fuzz = [sys.executable, "-m", "tests.fuzz", "--seconds", "60", "--target", planted.__name__]
    done = subprocess.run(  # noqa: S603 - our own interpreter
        [*fuzz, "--out", tmp_path],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1, done.stdout + done.stderr
    [crash] = (tmp_path / planted.__name__ / "faults").iterdir()
    assert crash.read_bytes()[:3] == b"fuz"
    assert len(crash.read_bytes()) == 4
    assert "1 faults" in done.stdout


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("nope", f"'nope' is none of {', '.join(TARGETS)}, and no module"),
        ("", "'' is none of "),
        (".nope", "'.nope' is none of "),
        ("tests.fuzz.nope", "'tests.fuzz.nope' is none of "),
        ("tests.fuzz.timed", "module tests.fuzz.timed has no run and no SEEDS"),
    ],
)
def test_a_name_that_is_no_target_is_one_line(name: str, said: str) -> None:
    told = CliRunner().invoke(main, ["--target", name])
    assert told.exit_code == 2
    assert said in " ".join(told.output.split())


def test_help_has_the_targets() -> None:
    told = " ".join(CliRunner().invoke(main, ["--help"]).output.split())
    assert all(name in told for name in TARGETS)


def test_an_input_is_slow_only_if_it_always_is(monkeypatch: pytest.MonkeyPatch) -> None:
    now = iter([0.0, 5.0, 5.0, 5.05])  # the first takes long, the second does not
    monkeypatch.setattr(time, "process_time", lambda: next(now))
    run_timed(lambda _: None, b"")
    now = iter(float(number) for number in range(8))
    with pytest.raises(TooSlowError, match="3 bytes take 1000 ms"):
        run_timed(lambda _: None, b"abc")


def test_the_least_of_an_input_is_left() -> None:
    assert minimise(planted.run, b"fuzzy and long behind") == b"fuzz"
