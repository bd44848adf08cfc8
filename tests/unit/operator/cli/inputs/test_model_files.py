"""What is read of a model's folder, of a file, and of Hugging Face."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.cases.planning import resource

from kvtier_operator.cli.inputs.model_files import from_hub, from_path, weights_in
from kvtier_operator.errors import InvalidInputError

CONFIG = {"num_hidden_layers": 4, "max_position_embeddings": 32768}
PARAMS = {"dim": 64, "n_layers": 4, "n_heads": 4, "n_kv_heads": 2}
QUANTIZATION = {"producer": {"name": "modelopt"}, "quantization": {"kv_cache_quant_algo": "FP8"}}


def write(folder: Path, **files: object) -> Path:
    for name, content in files.items():
        (folder / f"{name}.json").write_text(json.dumps(content), encoding="utf-8")
    return folder


def test_the_quantisation_that_stands_beside(tmp_path: Path) -> None:
    write(tmp_path, config=CONFIG, hf_quant_config=QUANTIZATION)
    for path in (tmp_path, tmp_path / "config.json"):
        found = from_path(path, "--model-config")
        assert found.config == CONFIG | {"quantization_config": QUANTIZATION}
        assert "hf_quant_config.json" in found.source


def test_a_config_with_its_own_goes_before_it(tmp_path: Path) -> None:
    own = CONFIG | {"quantization_config": {"quant_method": "awq"}}
    assert from_path(write(tmp_path, config=own, hf_quant_config=QUANTIZATION), "x").config == own


def test_mistrals_params(tmp_path: Path) -> None:
    write(tmp_path, params=PARAMS)
    for path in (tmp_path, tmp_path / "params.json"):
        config = from_path(path, "x").config
        assert config is not None
        assert (config["num_key_value_heads"], config["max_position_embeddings"]) == (2, 128_000)


def test_mistrals_params_go_first_beside_weights_of_their_format(tmp_path: Path) -> None:
    write(tmp_path, params=PARAMS, config=CONFIG | {"num_key_value_heads": 8})
    assert (from_path(tmp_path, "x").config or {})["num_key_value_heads"] == 8
    (tmp_path / "consolidated.safetensors").write_bytes(bytes(10))
    (tmp_path / "model-00001-of-00001.safetensors").write_bytes(bytes(11))
    found = from_path(tmp_path, "x")
    assert found.config is not None
    assert (found.config["num_key_value_heads"], found.config["max_position_embeddings"]) == (2, 32768)
    assert found.weights_bytes == weights_in(tmp_path) == 10  # one format is loaded, not both


@pytest.mark.parametrize(
    ("content", "words"),
    [("[]", "it holds no JSON object"), ("{", "not JSON"), ("[" * 9999, "not JSON")],
)
def test_what_is_none_is_named(tmp_path: Path, content: str, words: str) -> None:
    path = tmp_path / "hf_quant_config.json"
    write(tmp_path, config=CONFIG)
    path.write_text(content, encoding="utf-8")
    with pytest.raises(InvalidInputError, match=words) as refused:
        from_path(tmp_path, "spec.model.name")
    assert str(refused.value).startswith(f"{path}: spec.model.name: ")


def test_a_folder_without_one(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match=r"neither config\.json nor params\.json"):
        from_path(tmp_path, "spec.model.name")


@pytest.mark.parametrize("name", ["config.json", "hf_quant_config.json"])
@pytest.mark.parametrize(
    ("make", "words"),
    [
        (Path.mkdir, "Is a directory"),
        (os.mkfifo, "it is a pipe or a device; name a regular file"),
        (lambda path: path.symlink_to(path), "Too many levels of symbolic links"),
        (lambda path: path.symlink_to("/dev/zero"), "it is a pipe or a device; name a regular file"),
    ],
)
def test_what_is_no_file_is_not_read(
    tmp_path: Path, name: str, make: Callable[[Path], object], words: str
) -> None:
    write(tmp_path, config=CONFIG)
    path = tmp_path / name
    path.unlink(missing_ok=True)
    make(path)
    with pytest.raises(InvalidInputError, match=words) as refused:
        from_path(tmp_path, "--model-config")
    assert str(refused.value).startswith(f"{path}: --model-config: cannot be read: ")


def test_a_file_that_is_longer_than_any(tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    with path.open("wb") as file:
        file.truncate((64 << 20) + 1)
    with pytest.raises(InvalidInputError, match="--model-config: has more than 64 MiB"):
        from_path(path, "--model-config")


def test_a_link_to_weights_that_are_gone(tmp_path: Path) -> None:
    (tmp_path / "model-1.safetensors").symlink_to(tmp_path / "gone")
    assert weights_in(tmp_path) is None


class Hub:
    """A repository of the hub that has these files."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.asked: list[str] = []

    def metadata(self, url: str, **_: object) -> None:
        from huggingface_hub.errors import EntryNotFoundError  # noqa: PLC0415 - slow to import

        self.asked.append(url.rsplit("/", 1)[-1])
        if not (self.folder / self.asked[-1]).is_file():
            raise EntryNotFoundError("404")

    def download(self, _name: str, file: str, **_: object) -> str:
        return str(self.folder / file)


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Hub:
    one = Hub(tmp_path)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr("huggingface_hub.file_download.get_hf_file_metadata", one.metadata)
    monkeypatch.setattr("huggingface_hub.hf_hub_download", one.download)
    return one


@pytest.mark.parametrize(
    ("files", "asked"),
    [
        ({"config": CONFIG}, ["config.json", "hf_quant_config.json"]),
        ({"config": CONFIG | {"quantization_config": {"quant_method": "awq"}}}, ["config.json"]),
        ({"params": PARAMS}, ["config.json", "params.json", "hf_quant_config.json"]),
    ],
)
def test_no_more_is_asked_than_has_to_be(hub: Hub, files: dict[str, Any], asked: list[str]) -> None:
    write(hub.folder, **files)
    found = from_hub(resource("nobody/nothing").spec.model)
    assert found.config is not None
    assert found.config["num_hidden_layers"] == 4
    assert hub.asked == asked
    assert found.source == f"huggingface.co/nobody/nothing, {next(iter(files))}.json"


def test_a_repository_with_neither(hub: Hub) -> None:
    assert from_hub(resource("nobody/nothing").spec.model).config is None
    assert hub.asked == ["config.json", "params.json"]
