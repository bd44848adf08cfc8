import json
import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from tests.cases.kvcachetier import DISK, REMOTE, document

from kvtier_operator.cli.connector_args import connector_args
from kvtier_operator.errors import InvalidInputError

ON_NODE = {**DISK, "volume": {"hostPath": {"path": "/mnt/nvme0"}}}


def said(folder: Path, changes: dict[str, object], *arguments: str) -> Result:
    path = folder / "cr.yaml"
    path.write_text(json.dumps(document(changes)))
    return CliRunner().invoke(connector_args, ["-f", str(path), "--no-hub", *arguments])


def beside(result: Result) -> list[str]:
    """What standard error has but for what every line of kvtier's connector takes."""
    first, *others = result.stderr.splitlines()
    assert "with kvtier's connector in the same Python: pip install 'kvtier[connector]'" in first
    return others


def settings(folder: Path, changes: dict[str, object], *arguments: str) -> dict[str, object]:
    result = said(folder, changes, "-o", "json", *arguments)
    found = json.loads(result.stdout)["kvTransferConfig"]["kv_connector_extra_config"]
    assert isinstance(found, dict)
    return found


def test_one_line_that_a_shell_takes_apart_again(tmp_path: Path) -> None:
    result = said(tmp_path, {"spec.engine.tensorParallelSize": 2})
    assert (result.exit_code, beside(result), result.stdout.count("\n")) == (0, [], 1)
    variable, *words = shlex.split(result.stdout)
    assert variable == "PYTHONHASHSEED=0"
    assert words[:3] == ["vllm", "serve", "Qwen/Qwen3-32B"]
    assert words[words.index("--tensor-parallel-size") + 1] == "2"
    config = json.loads(words[words.index("--kv-transfer-config") + 1])
    assert config["kv_connector"] == "KVTierConnector"
    assert config["kv_connector_extra_config"]["cpu_capacity_bytes"] == 100 * 2**30


def test_for_a_program(tmp_path: Path) -> None:
    found = json.loads(said(tmp_path, {}, "-o", "json").stdout)
    assert found["env"] == {"PYTHONHASHSEED": "0"}
    assert (
        json.loads(found["argv"][found["argv"].index("--kv-transfer-config") + 1])
        == (found["kvTransferConfig"])
    )


@pytest.mark.parametrize(
    ("disk", "arguments", "folder"),
    [
        (DISK, (), "/var/lib/kvtier/disk/0/kvtier"),
        (ON_NODE, (), "/mnt/nvme0/kvtier"),
        (ON_NODE, ("--disk-folder", "/data/"), "/data/kvtier"),
        (DISK, ("--disk-folder", 'with " and \\'), 'with " and \\/kvtier'),
    ],
)
def test_where_the_disk_tier_goes(
    tmp_path: Path, disk: object, arguments: tuple[str, ...], folder: str
) -> None:
    assert settings(tmp_path, {"spec.tiers.disk": disk}, *arguments)["disk_path"] == folder


def test_a_folder_for_no_tier(tmp_path: Path) -> None:
    error = said(tmp_path, {}, "--disk-folder", "/data").exception
    assert isinstance(error, InvalidInputError)
    assert str(error) == f"{tmp_path / 'cr.yaml'}: --disk-folder: the resource has no disk tier: leave it out"


def test_the_folder_of_a_tier_of_vllm_s_own(tmp_path: Path) -> None:
    changes: dict[str, object] = {"spec.backend": "Native", "spec.tiers.disk": DISK}
    tiers = json.dumps(settings(tmp_path, changes, "--disk-folder", "/data")["secondary_tiers"])
    assert '"root_dir": "/data/native/' in tiers


def test_a_folder_of_the_machine(tmp_path: Path) -> None:
    result = said(tmp_path, {"spec.model.source": "file:///models/qwen"}, "-o", "json")
    assert (json.loads(result.stdout)["argv"][2], beside(result)) == ("/models/qwen", [])


def test_a_model_that_only_a_cluster_has_is_named(tmp_path: Path) -> None:
    result = said(tmp_path, {"spec.model.source": "pvc://claim/qwen"}, "-o", "json")
    assert json.loads(result.stdout)["argv"][2] == "Qwen/Qwen3-32B"
    assert beside(result) == [
        (
            f"{tmp_path / 'cr.yaml'}: spec.model.source: pvc://claim/qwen is a cluster's: this asks the Hub "
            "for Qwen/Qwen3-32B; put the folder with the model in its place"
        )
    ]


def test_secrets_of_a_store_are_named(tmp_path: Path) -> None:
    credentials = {"credentials": {"secretRef": {"name": "valkey"}}}
    result = said(tmp_path, {"spec.tiers.remote": REMOTE | credentials})
    assert beside(result) == [
        (
            f"{tmp_path / 'cr.yaml'}: /etc/kvtier/remote/credentials is Secret valkey of a cluster: put its "
            "files there"
        )
    ]
    assert "remote_credentials_path" in result.stdout


def test_what_the_cluster_has_is_named(tmp_path: Path) -> None:
    result = said(tmp_path, {"spec.model.tokenSecretRef": {"name": "hf-token"}})
    assert beside(result) == [
        f"{tmp_path / 'cr.yaml'}: HF_TOKEN comes from the cluster: set it in the environment"
    ]
    assert "HF_TOKEN" not in result.stdout


def test_what_is_for_pods_is_named(tmp_path: Path) -> None:
    result = said(tmp_path, {"spec.engine.podTemplate": {"spec": {"schedulerName": "volcano"}}})
    [line] = beside(result)
    assert line.startswith(f"{tmp_path / 'cr.yaml'}: spec.engine.podTemplate: for pods alone")
    assert result.stdout == said(tmp_path, {}).stdout


@pytest.mark.parametrize(
    ("backend", "what"), [("LMCache", "a configuration file"), ("LMCacheMP", "a server")]
)
def test_a_backend_that_a_line_does_not_start(tmp_path: Path, backend: str, what: str) -> None:
    error = said(tmp_path, {"spec.backend": backend}).exception
    assert isinstance(error, InvalidInputError)
    assert str(error).startswith(f"{tmp_path / 'cr.yaml'}: spec.backend: {backend} needs {what} beside vLLM")


def test_one_resource_at_a_time(tmp_path: Path) -> None:
    path = tmp_path / "two.yaml"
    path.write_text("\n---\n".join(json.dumps(document({"metadata.name": name})) for name in ("a", "b")))
    result = CliRunner().invoke(connector_args, ["-f", str(path), "--no-hub"])
    assert str(result.exception) == f"{path}: holds 2 resources (a, b); ask for one at a time"
