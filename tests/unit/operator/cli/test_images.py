import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from tests.cases.kvcachetier import ABSENT, document

from kvtier_common.version import KVTIER_VERSION
from kvtier_operator.cli.images import images
from kvtier_operator.planning.images import CONNECTOR_VERSION, PUBLISHED, ImageName


def listed(folder: Path, changes: dict[str, object], *arguments: str) -> Result:
    path = folder / "cr.yaml"
    path.write_text(json.dumps(document(changes)))
    return CliRunner().invoke(images, ["-f", str(path), "--no-hub", *arguments])


def test_the_operator_and_all_pods(tmp_path: Path) -> None:
    result = listed(tmp_path, {})
    assert result.exit_code == 0
    assert "push them with make release publish" in result.stderr
    assert result.stdout.splitlines() == [
        f"registry.invalid/kvtier/operator:{KVTIER_VERSION}",
        f"registry.invalid/kvtier/connector:{CONNECTOR_VERSION}",
        PUBLISHED[ImageName.VLLM],
        "ghcr.io/llm-d/llm-d-router-endpoint-picker:v0.10.0",
    ]


def test_a_mirror_and_an_image_of_its_own(tmp_path: Path) -> None:
    result = listed(
        tmp_path, {}, "--image-registry", "mirror.example/a", "--image", "connector=own.example/connector:1"
    )
    assert result.stderr == ""
    assert result.stdout.splitlines() == [
        f"mirror.example/a/kvtier/operator:{KVTIER_VERSION}",
        "own.example/connector:1",
        "mirror.example/a/vllm/vllm-openai:v0.32.0",
        "mirror.example/a/llm-d/llm-d-router-endpoint-picker:v0.10.0",
    ]


def test_what_each_is_for(tmp_path: Path) -> None:
    found = json.loads(listed(tmp_path, {}, "-o", "json").stdout)
    assert found[0] == {
        "image": f"registry.invalid/kvtier/operator:{KVTIER_VERSION}",
        "usedBy": ["kvtier-operator", "default/qwen3-32b-engine doctor"],
    }
    assert found[1]["usedBy"] == ["default/qwen3-32b-engine kvtier-payload"]


@pytest.mark.parametrize(
    ("changes", "image"),
    [
        ({"spec.backend": "LMCacheMP"}, "lmcache/vllm-openai:v0.5.6"),
        ({"spec.model.source": "oci://models.example/qwen:1"}, "models.example/qwen:1"),
        (
            {"spec.model.source": "s3://a/b", "spec.model.fetcher": {"image": "rclone/rclone:1"}},
            "rclone/rclone:1",
        ),
        ({"spec.router.flavor": "builtin"}, f"registry.invalid/kvtier/picker:{KVTIER_VERSION}"),
        ({"spec.router.gateway": {"provider": "standalone"}}, PUBLISHED[ImageName.ENVOY]),
        (
            {"spec.engine.podTemplate": {"spec": {"containers": [{"name": "more", "image": "a/b:1"}]}}},
            "a/b:1",
        ),
    ],
)
def test_whatever_a_pod_pulls(tmp_path: Path, changes: dict[str, object], image: str) -> None:
    assert image in listed(tmp_path, changes).stdout.splitlines()


def test_nothing_of_what_a_check_refuses(tmp_path: Path) -> None:
    result = listed(tmp_path, {"spec.backend": "Native", "spec.engine.device": "cpu"})
    assert (result.exit_code, result.stdout) == (1, "")
    assert "spec.backend: " in result.stderr


def test_pods_of_others_pull_the_connector(tmp_path: Path) -> None:
    attach = {"podSelector": {"matchLabels": {"app": "vllm"}}}
    found = json.loads(listed(tmp_path, {"spec.attach": attach, "spec.model": ABSENT}, "-o", "json").stdout)
    assert [image["usedBy"] for image in found] == [
        ["kvtier-operator"],
        ["default/qwen3-32b kvtier-payload"],
    ]
    assert found[1]["image"] == f"registry.invalid/kvtier/connector:{CONNECTOR_VERSION}"
