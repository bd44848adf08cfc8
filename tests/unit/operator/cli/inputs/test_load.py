import io
import json
import sys
from pathlib import Path

import pytest
from tests.cases.kvcachetier import document

from kvtier_operator.cli.inputs.load import load_resources
from kvtier_operator.errors import InvalidInputError

TIER = json.dumps(document({}))
OTHER = json.dumps(document({"metadata.name": "other"}))
DEPLOYMENT = json.dumps({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "x"}})


def _write(folder: Path, name: str, *documents: str) -> str:
    path = folder / name
    path.write_text("\n---\n".join(documents))
    return str(path)


def _said(*paths: str) -> str:
    with pytest.raises(InvalidInputError) as refused:
        load_resources(paths)
    return str(refused.value)


def _names(*paths: str) -> list[str]:
    return [resource.metadata.name for _, resource in load_resources(paths)]


def test_one_file(tmp_path: Path) -> None:
    path = _write(tmp_path, "cr.yaml", TIER)
    [(source, resource)] = load_resources([path])
    assert (source, resource.metadata.name) == (path, "qwen3-32b")


def test_several_documents_in_order_others_left_alone(tmp_path: Path) -> None:
    path = _write(tmp_path, "cr.yaml", "# a comment", TIER, DEPLOYMENT, "", OTHER)
    assert [source.removeprefix(path) for source, _ in load_resources([path])] == [
        " (document 1)",
        " (document 3)",
    ]
    assert _names(path) == ["qwen3-32b", "other"]


def test_a_folder_but_not_those_below(tmp_path: Path) -> None:
    _write(tmp_path, "b.json", TIER)
    _write(tmp_path, "a.yml", OTHER)
    _write(tmp_path, "kustomization.yaml", "resources: [a.yml]", DEPLOYMENT)
    _write(tmp_path, "notes.txt", "not: [yaml")
    (tmp_path / "below.yaml").mkdir()
    assert _names(str(tmp_path)) == ["other", "qwen3-32b"]


def test_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(TIER.encode())))
    [(source, _)] = load_resources(["-"])
    assert source == "-"


def test_what_kubectl_get_prints(tmp_path: Path) -> None:
    listed = json.dumps({"apiVersion": "v1", "kind": "List", "items": [document({}), json.loads(OTHER)]})
    assert _names(_write(tmp_path, "all.json", listed)) == ["qwen3-32b", "other"]


def test_missing_file() -> None:
    assert _said("no/such.yaml") == "no/such.yaml: cannot be read: No such file or directory"


@pytest.mark.parametrize(
    "content", ["", "# nothing\n", "---\n---\n"], ids=["no bytes", "a comment", "no documents"]
)
def test_empty_file(tmp_path: Path, content: str) -> None:
    path = _write(tmp_path, "cr.yaml", content)
    assert _said(path) == (
        f"{path}: is empty; write one with apiVersion: kvtier.dev/v1alpha1, kind: KVCacheTier"
    )


@pytest.mark.parametrize("name", ["cr.txt", "empty.yaml"])
def test_a_folder_without_one(tmp_path: Path, name: str) -> None:
    (tmp_path / name).touch()
    assert _said(str(tmp_path)).startswith(f"{tmp_path}: has no KVCacheTier in a .yaml, .yml or .json file; ")


def test_nothing_of_ours(tmp_path: Path) -> None:
    path = _write(tmp_path, "cr.yaml", DEPLOYMENT)
    assert _said(path).startswith(f"{path}: has no KVCacheTier; it has Deployment; write one with")


def test_ours_in_one_place_does_not_excuse_another(tmp_path: Path) -> None:
    other = _write(tmp_path, "other.yaml", DEPLOYMENT)
    assert _said(_write(tmp_path, "cr.yaml", TIER), other).startswith(f"{other}: has no KVCacheTier")


def test_a_misspelt_kind_in_our_group(tmp_path: Path) -> None:
    path = _write(tmp_path, "cr.yaml", TIER.replace('"KVCacheTier"', '"KVCacheTeir"'))
    assert _said(path) == f"{path}: kind: 'KVCacheTeir' is not KVCacheTier"


def test_no_kind(tmp_path: Path) -> None:
    path = _write(tmp_path, "cr.yaml", "spec: {}")
    assert _said(path) == f"{path}: apiVersion: is required: write kvtier.dev/v1alpha1"


def test_the_same_resource_twice(tmp_path: Path) -> None:
    first, second = _write(tmp_path, "a.yaml", TIER), _write(tmp_path, "b.yaml", TIER)
    assert _said(first, second) == (
        f"{second}: metadata.name: default/qwen3-32b is there twice, first in {first}; keep one"
    )


def test_the_same_name_in_two_namespaces(tmp_path: Path) -> None:
    elsewhere = json.dumps(document({"metadata.namespace": "team"}))
    assert _names(_write(tmp_path, "a.yaml", TIER, elsewhere)) == ["qwen3-32b", "qwen3-32b"]


@pytest.mark.parametrize(
    ("policy", "said"),
    [("Off", "Off without quotes is false in YAML; taken for Never"), ("'Off'", "Off is called Never now")],
)
def test_a_former_word_is_taken_with_a_warning(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], policy: str, said: str
) -> None:
    path = _write(
        tmp_path,
        "cr.yaml",
        "apiVersion: kvtier.dev/v1alpha1\n"
        "kind: KVCacheTier\n"
        "metadata: {name: a}\n"
        "spec: {model: {name: m}, tiers: {cpu: {capacity: 1Gi, memlock: {policy: "
        f"{policy}}}}}}}}}\n",
    )
    assert _names(path) == ["a"]
    line = capsys.readouterr().err
    assert line.startswith(f"{path}: spec.tiers.cpu.memlock.policy: {said}")
    assert line.count("\n") == 1


def test_a_file_that_is_longer_than_any(tmp_path: Path) -> None:
    path = tmp_path / "tier.yaml"
    with path.open("wb") as file:
        file.truncate((64 << 20) + 1)
    assert _said(str(path)).startswith(f"{path}: has more than 64 MiB")
