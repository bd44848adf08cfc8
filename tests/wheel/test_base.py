"""The wheel in an empty environment: help and planning work, the rest says what it needs."""

import json
import re

import pytest
import yaml
from tests.unit.operator.cli.test_help import COMMANDS
from tests.wheel.environment import ROOT, Environment

FIRST = ROOT / "docs" / "user-guide" / "examples" / "first.yaml"
BEYOND_PIP = "uv pip install --override <(echo torch==2.13.0) 'kvtier[engine-cpu]'"


@pytest.mark.parametrize("path", COMMANDS, ids=" ".join)
def test_help(base: Environment, path: tuple[str, ...]) -> None:
    done = base.run(*path, "--help")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(f"Usage: {' '.join(path)} ")


@pytest.mark.parametrize("group", [("kvtier",), ("kvtier", "bench")], ids=" ".join)
def test_help_lists_the_commands(base: Environment, group: tuple[str, ...]) -> None:
    said = base.run(*group, "--help")
    names = [path[-1] for path in COMMANDS if path[:-1] == group]
    assert len(names) > 3
    for name in names:
        assert re.search(rf"^  {name} +\w", said.stdout, re.MULTILINE)


def test_planning(base: Environment) -> None:
    done = base.run("kvtier", "plan", "-f", FIRST)
    assert (done.returncode, done.stderr) == (0, "")
    assert "409,600" in done.stdout
    assert json.loads(base.run("kvtier", "plan", "-f", FIRST, "-o", "json").stdout)


@pytest.mark.parametrize("command", ["render", "bench job"])
def test_objects(base: Environment, command: str) -> None:
    done = base.run("kvtier", *command.split(), "-f", FIRST, "--image-registry", "registry.example")
    assert (done.returncode, done.stderr) == (0, "")
    kinds = [document["kind"] for document in yaml.safe_load_all(done.stdout)]
    assert kinds[-1] == "Job" if command == "bench job" else "Deployment" in kinds


def test_what_is_looked_up(base: Environment) -> None:
    for typed in (
        ("images", "-f", FIRST, "--image-registry", "registry.example"),
        ("init", "--model", "a/b"),
        ("explain", "spec.tiers"),
    ):
        done = base.run("kvtier", *typed)
        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout


def test_what_is_for_another_machine(base: Environment) -> None:
    resource = yaml.safe_load(FIRST.read_text(encoding="utf-8"))
    resource["spec"]["tiers"]["cpu"]["capacity"] = "1Gi"
    (base.folder / "small.yaml").write_text(yaml.safe_dump(resource), encoding="utf-8")
    for typed, lacks in (
        ("connector-args", "kvtier's connector"),
        ("run --dry-run", "vLLM is not installed"),
    ):
        done = base.run("kvtier", *typed.split(), "-f", "small.yaml")
        assert done.returncode == 0, done.stderr
        assert lacks in done.stderr
        assert "Qwen/Qwen3-32B" in done.stdout


def test_the_hub_is_asked(base: Environment, monkeypatch: pytest.MonkeyPatch) -> None:
    resource = yaml.safe_load(FIRST.read_text(encoding="utf-8"))
    resource["spec"]["model"]["name"] = "nobody/nothing"
    (base.folder / "unknown.yaml").write_text(yaml.safe_dump(resource), encoding="utf-8")
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)
    done = base.run("kvtier", "plan", "--hub", "-f", "unknown.yaml")
    assert done.returncode == 2
    assert "no answer to http://127.0.0.1:9/nobody/nothing/" in done.stderr


def test_as_a_plug_in_of_kubectl(base: Environment) -> None:
    assert base.run("kubectl-kvtier", "plan", "-h").stdout.startswith("Usage: kubectl kvtier plan ")
    assert base.run("kubectl_complete-kvtier", "expl").stdout.startswith("explain\t")


def test_the_doctor(base: Environment) -> None:
    done = base.run("kvtier", "doctor", "-f", FIRST)
    assert done.returncode in {0, 1}
    assert (done.stderr, done.stdout.splitlines()[0]) == ("", f"{FIRST}: qwen3-32b")


def test_a_server_that_does_not_answer(base: Environment) -> None:
    for bench in (("query-twice", "--context", FIRST), ("shared-prefix",)):
        done = base.run("kvtier", "bench", *bench, "--url", "http://127.0.0.1:9")
        assert done.returncode == 3
        assert "the server does not answer" in done.stderr


def test_a_run_without_vllm(base: Environment) -> None:
    resource = yaml.safe_load(FIRST.read_text(encoding="utf-8"))
    resource["spec"] = {
        "model": {"name": "Qwen/Qwen3-0.6B"},
        "engine": {"device": "cpu", "kvCacheMemory": "1Gi", "maxModelLen": 2048},
        "tiers": {"cpu": {"capacity": "2Gi"}},
    }
    (base.folder / "small.yaml").write_text(yaml.safe_dump(resource), encoding="utf-8")
    done = base.run("kvtier", "run", "-f", "small.yaml")
    assert done.returncode == 3
    assert BEYOND_PIP in done.stderr


@pytest.mark.parametrize(
    ("typed", "how"),
    [
        ("kvtier demo", BEYOND_PIP),
        ("kvtier bench connector", "pip install 'kvtier[connector]'"),
        ("kvtier picker --config-file FIRST", "pip install 'kvtier[scorer]'"),
        ("kvtier status any", "pip install 'kvtier[operator]'"),
        ("kvtier plan any", "pip install 'kvtier[operator]'"),
        ("kvtier doctor any", "pip install 'kvtier[operator]'"),
        ("kvtier top", "pip install 'kvtier[operator]'"),
        ("kvtier simulate --trace high-cache", "pip install 'kvtier[scorer]'"),
        ("kvtier-operator", "pip install 'kvtier[operator]'"),
    ],
)
def test_what_needs_an_extra_says_so_in_a_line(base: Environment, typed: str, how: str) -> None:
    done = base.run(*typed.replace("FIRST", str(FIRST)).split())
    (line,) = done.stderr.splitlines()
    assert done.returncode == (1 if typed == "kvtier-operator" else 3)
    assert line.startswith(f"{typed.split(maxsplit=1)[0]}: ")
    assert " not installed" in line
    assert how in line
