"""What is observed for a plan: a model's folder, what an earlier run left, and no more than is needed."""

import sys
from pathlib import Path

import pytest
from tests.cases.planning import resource

from kvtier_operator.api.resource import KVCacheTier
from kvtier_operator.cli.inputs.observe import observe, weights_in
from kvtier_operator.errors import InvalidInputError
from kvtier_operator.runtime.machine import engine_name, volume_folder


def tier_on(volume: dict[str, object]) -> KVCacheTier:
    geometry = {"kvBytesPerToken": 1}
    return resource("x/y", geometry=geometry, tiers={"disk": {"capacity": "1Gi", "volume": volume}})


def own_bytes(one: KVCacheTier, run_folder: Path | None = None) -> int:
    machine = observe(one, local=True, run_folder=run_folder).machine
    assert machine is not None
    return machine.disk_own_bytes


def test_what_the_tier_left_in_a_folder_of_the_node_is_its_own(tmp_path: Path) -> None:
    (tmp_path / "kvtier").mkdir()
    (tmp_path / "kvtier" / "blocks-000000").write_bytes(bytes(8192))
    (tmp_path / "photos").write_bytes(bytes(1 << 20))
    assert own_bytes(tier_on({"hostPath": {"path": str(tmp_path)}})) == 8192
    assert own_bytes(tier_on({"hostPath": {"path": str(tmp_path / "not" / "yet")}})) == 0


def test_a_models_folder_is_read_where_its_source_says(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text('{"num_hidden_layers": 3}')
    (tmp_path / "model.safetensors").write_bytes(bytes(4096))
    found = observe(resource("team/own", model_source={"source": f"file://{tmp_path}"}))
    assert found.model_config == {"num_hidden_layers": 3}
    assert found.weights_bytes == 4096
    (tmp_path / "config.json").write_text("[]")
    with pytest.raises(InvalidInputError, match=r"spec\.model\.source: not the file of a model"):
        observe(resource("team/own", model_source={"source": f"file://{tmp_path}"}))


def test_what_it_left_in_the_folder_of_a_run_too(tmp_path: Path) -> None:
    for number in (0, 1):
        folder = volume_folder(tmp_path / engine_name(number), "kv-disk-0")
        folder.mkdir(parents=True)
        (folder / "blocks-000000").write_bytes(bytes(4096))
    claim = tier_on({"persistentVolumeClaim": {"claimName": "kv"}})
    assert own_bytes(claim, tmp_path) == 8192
    assert own_bytes(claim) == 0


def test_weights_are_all_safetensors_files(tmp_path: Path) -> None:
    assert weights_in(tmp_path) is None
    (tmp_path / "pytorch_model.bin").write_bytes(bytes(7))
    assert weights_in(tmp_path) == 7
    for number in (1, 2):
        (tmp_path / f"model-0000{number}-of-00002.safetensors").write_bytes(bytes(100))
    assert weights_in(tmp_path) == 200


def test_nothing_is_read_that_the_resource_says() -> None:
    observed = observe(resource("x/y", geometry={"kvBytesPerToken": 1}), hub=True)
    assert (observed.model_config, observed.machine) == (None, None)


def test_the_hub_is_not_asked_for_what_the_catalogue_has(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "kvtier_operator.reconcile.observe.huggingface", None)  # would raise
    assert observe(resource(), hub=True).model_config is None


def test_a_hub_that_is_out_of_reach(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HF_HOME", str(tmp_path))
    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    observed = observe(resource("nobody/nothing"), hub=True)
    assert observed.model_config is None
    assert observed.model_config_missing.startswith("no answer to http://127.0.0.1:9/nobody/nothing/")


def drafting(model: Path | str, **model_fields: object) -> KVCacheTier:
    extra_args = ["--spec-model", str(model), "--spec-tokens", "3"]
    return resource("Qwen/Qwen3-32B", engine={"extraArgs": extra_args}, model_fields=model_fields)


def test_a_drafts_folder_is_read(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text('{"num_hidden_layers": 1}')
    (tmp_path / "model.safetensors").write_bytes(bytes(100))
    found = observe(drafting(tmp_path))
    assert found.draft_config == {"num_hidden_layers": 1}
    assert (found.draft_config_source, found.draft_weights_bytes) == (str(tmp_path / "config.json"), 100)


def test_no_hub_is_asked_for_a_draft(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "kvtier_operator.reconcile.observe.huggingface", None)  # would raise
    assert observe(drafting("a/draft"), hub=True).draft_config is None
