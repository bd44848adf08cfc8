"""What others wrote is shown by every command, and commands no terminal."""

import json
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from importlib.metadata import distribution
from pathlib import Path
from typing import Any

import pytest
import yaml

from kvtier_common.terminal import say
from kvtier_operator.cli.main import main

FORGED = (
    "a\x1b[31mb\x07c\x9b2Jd\u202ee\u2028f\rg\x1b]8;;http://h\x07i\x1b]52;c;eA==\x07\x7f\u2066\ufeff\U000e0041"
    "[red]j[/red][link=http://k]l"
)
LONG = FORGED * 400  # a spec has room for it once
OWN_STYLES = re.compile(r"\x1b\[(?:0|1|2|31|32|33|36)m")
DUMPER = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
CONFIG = {"num_hidden_layers": 8, "num_attention_heads": 12, "num_key_value_heads": 2, "hidden_size": 768}


@dataclass(frozen=True)
class Said:
    code: int
    out: str
    err: str


Run = Callable[..., Said]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    def run(*arguments: str) -> Said:
        monkeypatch.setattr(sys, "argv", ["kvtier", *arguments])
        with pytest.raises(SystemExit) as ended:
            main("kvtier")
        captured = capsys.readouterr()
        assert isinstance(ended.value.code, int)
        return Said(ended.value.code, captured.out, captured.err)

    return run


def write(path: Path, document: object) -> str:
    dumped = (
        yaml.dump(document, Dumper=DUMPER) if path.suffix == ".yaml" else json.dumps(document)
    )  # both escape all of it
    path.write_text(dumped, encoding="utf-8")
    return str(path)


def resource(**changes: Any) -> dict[str, Any]:  # noqa: ANN401 - YAML
    """Each change names its field with two underscores for a dot."""
    document: dict[str, Any] = {
        "apiVersion": "kvtier.dev/v1alpha1",
        "kind": "KVCacheTier",
        "metadata": {"name": "a"},
        "spec": {
            "model": {"name": "m/m", "geometry": {"kvBytesPerToken": 1024}},
            "engine": {"device": "cpu", "maxModelLen": 1024, "kvCacheMemory": "4Mi"},
            "tiers": {"cpu": {"capacity": "64Mi"}},
        },
    }
    for path, value in changes.items():
        *parents, last = path.split("__")
        place = document
        for name in parents:
            place = place.setdefault(name, {})
        place[last] = value
    return document


def documents(text: str) -> Iterator[Mapping[str, Any]]:
    """The text in each field that can hold one, and in the names of fields."""
    for field in (
        "apiVersion",
        "kind",
        "metadata__name",
        "metadata__namespace",
        "spec__backend",
        "spec__model__name",
        "spec__model__revision",
        "spec__model__source",
        "spec__engine__image",
        "spec__tiers__cpu__capacity",
        "spec__router__version",
        "spec__router__gateway__hostnames",
    ):
        yield resource(**{field: text})
    yield resource(**{text: 1})
    yield resource(metadata__labels={text: text}, metadata__annotations={text: text})
    yield resource(**{f"spec__{text}": text})
    yield resource(**{f"spec__engine__{text}": text})
    yield resource(spec__model__servedNames=[text])
    yield resource(spec__model__servedNames=[text, text])
    yield resource(spec__model__loraModules=[{"name": text, "path": text}])
    yield resource(spec__engine__extraArgs=[text])
    yield resource(spec__engine__extraArgs=[f"--{text}"])
    yield resource(spec__engine__extraArgs=["--seed", text])
    yield resource(spec__engine__extraArgs=["--chat-template", f"{{{text}"])
    yield resource(spec__engine__extraArgs=["--hf-overrides", json.dumps({text: text})])
    yield resource(spec__engine__env=[{"name": "A", "value": text}])
    yield resource(spec__engine__env=[{"name": text, "value": "1"}])
    yield resource(spec__engine__podTemplate={"metadata": {"annotations": {"a": text}}})
    yield resource(spec__engine__podTemplate={"spec": {text: text}})
    yield resource(spec__tiers__disk={"capacity": "1Gi", "volume": {"hostPath": {"path": f"/{text}"}}})


def check(said: Said, *, allowed: str = "\n") -> None:
    for text in (said.out, said.err):
        assert {character for character in text if not character.isprintable()} <= set(allowed)
    assert len(said.err) < 30_000
    assert all(len(line) < 2100 for line in said.err.splitlines())


PLANNING = {
    "plan": ("--no-hub", "-f"),
    "plan for all of it": ("--no-hub", "-v", "-f"),
    "plan as json": ("--no-hub", "-o", "json", "-f"),
    "plan for this machine": ("--no-hub", "--local", "-f"),
    "render": ("--no-hub", "-f"),
    "run": ("--dry-run", "-f"),
    "doctor": ("--no-hub", "-f"),
    "images": ("-f",),
    "images as json": ("-o", "json", "-f"),
    "connector-args": ("--no-hub", "-f"),
    "connector-args as json": ("--no-hub", "-o", "json", "-f"),
    "bench job": ("-f",),
}


@pytest.mark.parametrize("name", PLANNING)
def test_a_field_of_a_resource(tmp_path: Path, run: Run, name: str) -> None:
    path = tmp_path / "a.yaml"
    shown = 0
    # what is long is cut off where it is read, which they share
    for text in (FORGED, LONG) if name in {"plan", "run"} else (FORGED,):
        for document in documents(text):
            said = run(
                *name.partition(" as ")[0].partition(" for ")[0].split(),
                *PLANNING[name],
                write(path, document),
            )
            check(said)
            assert said.code in (0, 1, 2, 3), said.err
            if text is FORGED:
                assert len(said.out) < 100_000
            shown += bool(said.out)
            if said.code == 0 and "json" in name:
                json.loads(said.out)
            if name == "render":
                [*yaml.load_all(said.out, Loader=LOADER)]
    assert shown


def theirs() -> Iterator[Mapping[str, Any]]:
    """A Deployment of somebody's with the text in what is said of it."""
    container = {"name": "a", "image": "vllm/vllm-openai:v0.33.0"}
    for part in (
        {},
        {"name": FORGED},
        {"image": FORGED},
        {"command": ["sh", "-c", f"{FORGED} '{FORGED}", "-pp", "2"]},
        {"env": [{"name": "PYTHONPATH", "value": FORGED}]},
        {"resources": {"limits": {"memory": FORGED}}},
        {"volumeMounts": [{"name": FORGED, "mountPath": FORGED}]},
    ):
        yield {"kind": "Deployment", "spec": {"template": {"spec": {"containers": [container | part]}}}}
    yield {"kind": FORGED, "metadata": {"name": LONG}}


def test_objects_of_others(tmp_path: Path, run: Run) -> None:
    labels = {"a": "b"}
    tier = resource(
        spec={"attach": {"podSelector": {"matchLabels": labels}}, "tiers": {"cpu": {"capacity": "1Gi"}}}
    )
    arguments = ("attach", "--no-hub", "-f", write(tmp_path / "tier.yaml", tier), "-f")
    for document in theirs():
        for more in ({}, {FORGED: FORGED}, {"kvtier.dev/attached": FORGED}):
            if "spec" in document:
                metadata = {"labels": labels | more, "annotations": more}
                document["spec"]["template"]["metadata"] = metadata
            for output in ((), ("-o", "patch"), ("--diff",)):
                said = run(*arguments, write(tmp_path / "theirs.yaml", document), *output)
                check(said)
                assert said.code in (0, 1), said.err
            if said.code == 1:
                [printed] = yaml.load_all(run(*arguments, str(tmp_path / "theirs.yaml")).out, Loader=LOADER)
                assert printed == document


def test_what_is_for_a_machine_has_all_of_it(tmp_path: Path, run: Run) -> None:
    path = write(tmp_path / "a.yaml", resource(spec__engine__extraArgs=["--chat-template", FORGED]))
    objects = yaml.load_all(run("render", "--no-hub", "-f", path).out, Loader=LOADER)
    [engine] = [
        document
        for document in objects
        if document["kind"] == "Deployment" and document["metadata"]["name"] == "a-engine"
    ]
    assert FORGED in engine["spec"]["template"]["spec"]["containers"][0]["args"]
    assert FORGED in json.loads(run("connector-args", "--no-hub", "-o", "json", "-f", path).out)["argv"]


def forged_files(folder: Path) -> Iterator[tuple[str, ...]]:
    """Files that are not what they are taken for, their names and what stands in them."""
    (folder / "tag.yaml").write_text(f"a: !!{'x' * 9999}%1B y")
    (folder / "key.yaml").write_text(json.dumps(LONG) + ": 1\n" + json.dumps(LONG) + ": 2")
    (folder / "bytes.yaml").write_bytes(FORGED.encode())
    (folder / f"{FORGED.replace('/', '')}.yaml").write_text("a: [")
    (folder / "many.yaml").write_text(
        json.dumps(resource(**{f"{FORGED}{number}": 1 for number in range(500)}))
    )
    (folder / "kinds.yaml").write_text(
        "\n---\n".join(json.dumps({"kind": f"{LONG}{number}"}) for number in range(9))
    )
    for file in sorted(folder.glob("*.yaml")):
        yield "plan", "--no-hub", "-f", str(file)
        yield "plan", "--no-hub", "-f", str(file), "--policy", str(file)
    config = {
        "architectures": [LONG],
        "model_type": FORGED,
        "torch_dtype": FORGED,
        "layer_types": [FORGED] * 8,
    }
    for each in (
        CONFIG | config,
        CONFIG | {"quantization_config": {FORGED: FORGED, "quant_method": LONG}},
        {LONG: 1},
    ):
        write(folder / "config.json", each)
        named = write(folder / "named.yaml", resource(spec__model={"name": "nobody/nothing"}))
        yield "plan", "-f", named, "--no-hub", "--model-config", str(folder / "config.json")
    yield "explain", FORGED
    yield "explain", LONG
    yield "init", "--model", FORGED, "--set", FORGED
    yield "completion", FORGED
    yield "plan", "-f", f"https://{FORGED}"
    yield (FORGED,)
    yield "plan", f"--{FORGED}"
    yield "plan", "-o", FORGED
    yield "status", FORGED
    yield "clear", FORGED
    yield "clear", "a", "--prefix-of", FORGED
    yield "warm", "a", "-f", FORGED
    yield "keep", "a", FORGED, "--for", FORGED
    yield "simulate", "--trace", str(folder / "many.yaml")
    yield "simulate", "--trace", FORGED
    yield "picker", "--config-file", str(folder / "key.yaml"), "--endpoint", "127.0.0.1:1"
    yield "bench", "shared-prefix", "--url", "http://127.0.0.1:1", "--beside", str(folder / "key.yaml")
    yield "bench", "shared-prefix", "--url", FORGED
    yield "bench", "query-twice", "--url", FORGED, "--context", str(folder / "many.yaml"), "--question", "a"
    yield "bench", "remote", "--url", FORGED


def test_a_file_or_an_argument(tmp_path: Path, run: Run) -> None:
    for arguments in forged_files(tmp_path):
        said = run(*arguments)
        check(said)
        assert said.code or "--model-config" in arguments, said


def test_every_command_is_tried() -> None:
    """By this file, or by one that knows its cluster or its engine."""
    elsewhere = {"demo", "top", "bench", "connector"}
    tried = {name.split()[0] for name in PLANNING} | {
        *("attach", "clear", "completion", "explain", "init", "keep", "picker", "simulate", "status", "warm")
    }
    commands = distribution("kvtier").entry_points
    assert {each.name for each in commands.select(group="kvtier.commands")} <= tried | elsewhere
    benches = {"job", "shared-prefix", "query-twice", "remote"}
    assert {each.name for each in commands.select(group="kvtier.bench")} <= benches | elsewhere


def test_kvtiers_own_colours_stay(tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kvtier_operator.cli.plan.wants_colour", lambda: True)
    said = run(
        "plan",
        "--no-hub",
        "-v",
        "-f",
        write(tmp_path / "a.yaml", resource(spec__engine__extraArgs=["--chat-template", FORGED])),
    )
    assert "\x1b[32m✓\x1b[0m" in said.out
    plain = Said(said.code, OWN_STYLES.sub("", said.out), said.err)
    check(plain)
    assert r"--chat-template $'a\x1b[31mb\x07c\u009b2Jd\u202ee" in plain.out
    monkeypatch.undo()
    assert say.style_text(said.out, colour=True).count("\x1b") == 0
