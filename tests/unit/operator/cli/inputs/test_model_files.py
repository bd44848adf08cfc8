"""What is read of a model's folder, of a file, and of Hugging Face."""

import json
import os
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest
from tests.cases.planning import resource
from tests.cluster.harness.stand_ins.http_server import serving

from kvtier_operator.cli.inputs.observe import from_hub, from_path, weights_in
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
        file.truncate((2 << 20) + 1)
    with pytest.raises(InvalidInputError, match="--model-config: has more than 2 MiB"):
        from_path(path, "--model-config")


def test_a_link_to_weights_that_are_gone(tmp_path: Path) -> None:
    (tmp_path / "model-1.safetensors").symlink_to(tmp_path / "gone")
    assert weights_in(tmp_path) is None


class Hub:
    """A repository that a mirror on this machine has, and what it was asked for with which token."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.asked: list[str] = []
        self.tokens: set[str | None] = set()
        self.location = ""
        self.refusal: tuple[int, str] | None = None  # a status, and the header that names what it is

    def handler(self) -> type[BaseHTTPRequestHandler]:
        hub = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                hub.asked.append(self.path.removeprefix("/nobody/nothing/resolve/main/"))
                hub.tokens.add(self.headers["Authorization"])
                file = hub.folder / hub.asked[-1]
                status, code = hub.refusal or (200 if file.is_file() else 404, "")
                self.send_response(307 if hub.location else status)
                self.send_header("Location", hub.location)
                self.send_header("X-Error-Code", code)
                self.end_headers()
                self.wfile.write(file.read_bytes() if file.is_file() else b"")

            def log_message(self, *_: object) -> None:
                pass

        return Handler


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    one = Hub(tmp_path)
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("HF_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)
    monkeypatch.setenv("HF_TOKEN", "hf_of_a_person")
    with serving(one.handler()) as port:
        monkeypatch.setenv("HF_ENDPOINT", f"http://127.0.0.1:{port}")
        yield one


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
    assert (hub.asked, hub.tokens) == (asked, {"Bearer hf_of_a_person"})
    assert found.source.endswith(f"/nobody/nothing, {next(iter(files))}.json")


def test_a_repository_with_neither(hub: Hub) -> None:
    found = from_hub(resource("nobody/nothing").spec.model)
    assert found.config is None
    assert "has no config.json of 'nobody/nothing': there is no model of that name, " in found.missing
    assert hub.asked == ["config.json", "params.json"]


@pytest.mark.parametrize("code", ["GatedRepo", ""])
@pytest.mark.parametrize("status", [401, 403])
def test_a_model_that_is_not_for_everyone(
    hub: Hub, monkeypatch: pytest.MonkeyPatch, status: int, code: str
) -> None:
    hub.refusal = status, code
    missing = from_hub(resource("nobody/nothing").spec.model).missing
    assert f"{status}, the model is gated{': accept its terms' if code else ' or private'}" in missing
    assert "have the account whose token is in HF_TOKEN let in" in missing
    monkeypatch.delenv("HF_TOKEN")
    assert "set HF_TOKEN to the token of" in from_hub(resource("nobody/nothing").spec.model).missing
    (hub.folder / "home").mkdir()
    (hub.folder / "home" / "token").write_text("hf_of_a_file\n", encoding="ascii")
    assert "have the account" in from_hub(resource("nobody/nothing").spec.model).missing
    assert hub.tokens == {"Bearer hf_of_a_person", None, "Bearer hf_of_a_file"}


def test_who_is_asked_sends_nobody_elsewhere(hub: Hub, tmp_path_factory: pytest.TempPathFactory) -> None:
    metadata = Hub(write(tmp_path_factory.mktemp("metadata"), config=CONFIG))
    with serving(metadata.handler(), "127.0.0.2") as port:
        hub.location = f"http://127.0.0.2:{port}/config.json"
        found = from_hub(resource("nobody/nothing").spec.model)
    assert found.config is None
    assert f"sent on to http://127.0.0.2:{port}" in found.missing
    assert metadata.asked == []


def test_what_was_downloaded_before_is_not_asked_for(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    snapshot = hub.folder / "cache" / "models--nobody--nothing" / "snapshots" / "abc"
    snapshot.mkdir(parents=True)
    (refs := snapshot.parents[1] / "refs").mkdir()
    (refs / "main").write_text("abc", encoding="utf-8")
    write(snapshot, config=CONFIG)
    assert from_hub(resource("nobody/nothing").spec.model).config == CONFIG
    assert hub.asked == ["hf_quant_config.json"]
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    assert from_hub(resource("nobody/nothing").spec.model).config == CONFIG
    assert "HF_HUB_OFFLINE" in from_hub(resource("nobody/else").spec.model).missing
    assert hub.asked == ["hf_quant_config.json"]
