import json
from pathlib import Path
from typing import Any

import yaml
from click.testing import CliRunner, Result
from tests.cases.kvcachetier import document

from kvtier_operator.cli.render import render
from kvtier_operator.errors import InvalidInputError
from kvtier_operator.planning.images import CONNECTOR_VERSION, doctor_image


def write(folder: Path, name: str, changes: dict[str, object]) -> str:
    path = folder / f"{name}.yaml"
    path.write_text(json.dumps(document({"metadata.name": name} | changes)))
    return str(path)


def rendered(*arguments: str) -> Result:
    return CliRunner().invoke(render, ["--no-hub", "--image-registry", "registry.example", *arguments])


def names(result: Result) -> list[str]:
    return [
        document["metadata"]["name"]
        for document in yaml.safe_load_all(result.stdout)
        if document["kind"] == "InferencePool"
    ]


def test_several_resources_in_the_order_given(tmp_path: Path) -> None:
    first, second = write(tmp_path, "b", {}), write(tmp_path, "a", {})
    result = rendered("-f", first, "-f", second)
    assert (result.exit_code, result.stderr, names(result)) == (0, "", ["b", "a"])


def test_one_list_for_a_program(tmp_path: Path) -> None:
    path = write(tmp_path, "a", {})
    as_json = json.loads(rendered("-f", path, "-o", "json").stdout)
    assert (as_json["apiVersion"], as_json["kind"]) == ("v1", "List")
    assert as_json["items"] == [*yaml.safe_load_all(rendered("-f", path).stdout)]


def test_a_folder(tmp_path: Path) -> None:
    write(tmp_path, "b", {})
    write(tmp_path, "a", {})
    assert names(rendered("-f", str(tmp_path))) == ["a", "b"]


def test_standard_input(tmp_path: Path) -> None:
    text = Path(write(tmp_path, "piped", {})).read_text()
    result = CliRunner().invoke(render, ["--no-hub", "-f", "-"], input=text)
    assert names(result) == ["piped"]


def test_the_same_bytes_each_time(tmp_path: Path) -> None:
    path = write(tmp_path, "same", {"spec.engine.nodeSelector": {"b": "1", "a": "2"}})
    turned = tmp_path / "turned"
    turned.mkdir()
    other = write(turned, "same", {"spec.engine.nodeSelector": {"a": "2", "b": "1"}})
    assert rendered("-f", path).stdout == rendered("-f", path).stdout == rendered("-f", other).stdout


def test_one_refused_resource_leaves_nothing_printed(tmp_path: Path) -> None:
    good = write(tmp_path, "good", {})
    bad = write(tmp_path, "bad", {"spec.backend": "Native", "spec.engine.device": "cpu"})
    result = rendered("-f", good, "-f", bad)
    assert (result.exit_code, result.stdout) == (1, "")
    assert all(line.startswith(f"{bad}: spec.") for line in result.stderr.splitlines())
    assert f"{bad}: spec.backend: " in result.stderr


def test_bad_input_is_left_to_the_command_line(tmp_path: Path) -> None:
    path = write(tmp_path, "typo", {"spec.teirs": {}})
    result = rendered("-f", path)
    assert isinstance(result.exception, InvalidInputError)
    assert result.stdout == ""


def test_a_model_config(tmp_path: Path) -> None:
    config = tmp_path / "config.json"
    config.write_text(
        json.dumps(
            {
                "model_type": "llama",
                "num_hidden_layers": 8,
                "hidden_size": 768,
                "num_attention_heads": 12,
                "num_key_value_heads": 2,
                "torch_dtype": "bfloat16",
                "max_position_embeddings": 16384,
            }
        )
    )
    path = write(tmp_path, "unknown", {"spec.model.name": "nobody/knows"})
    (tmp_path / "config.json").rename(tmp_path / "model.config")
    assert isinstance(rendered("-f", path).exception, InvalidInputError)
    result = rendered("-f", path, "--model-config", str(tmp_path / "model.config"))
    assert result.exit_code == 0
    # 2 x 8 layers x 2 heads x 64 x 2 B = 4,096 B a token: 100 GiB are 26,214,400 tokens
    assert "lruCapacityPerServer: 409600" in result.stdout


def test_routes_that_would_hide_each_other_are_told(tmp_path: Path) -> None:
    def gateway(*hosts: str) -> dict[str, object]:
        return {"spec.router.gateway": {"parentRef": {"name": "front"}, "hostnames": [*hosts]}}

    for name, hosts in (("a", []), ("b", []), ("c", ["c.example.com"]), ("d", ["c.example.com"])):
        write(tmp_path, name, gateway(*hosts))
    result = rendered("-f", str(tmp_path))
    assert (result.exit_code, names(result)) == (1, [])
    first, second = result.stderr.splitlines()
    assert first.startswith(
        f"{tmp_path / 'a.yaml'} and {tmp_path / 'b.yaml'}: RouteHidden spec.router.gateway: default/a and "
        "default/b both ask Gateway default/front for all requests below /v1/chat/completions for every"
    )
    assert "default/c and default/d" in second
    assert "c.example.com" in second
    assert "spec.router.gateway.ownPath" in second
    assert rendered("-f", str(tmp_path / "b.yaml"), "-f", str(tmp_path / "c.yaml")).stderr == ""


def test_a_route_that_keeps_some_of_its_requests_is_no_refusal(tmp_path: Path) -> None:
    for name, hosts in (("a", ["a.example.com"]), ("b", ["a.example.com", "b.example.com"])):
        write(tmp_path, name, {"spec.router.gateway": {"parentRef": {"name": "front"}, "hostnames": hosts}})
    result = rendered("-f", str(tmp_path))
    assert (result.exit_code, names(result)) == (0, ["a", "b"])
    assert "all requests below /v1/chat/completions for a.example.com" in result.stderr


def test_routes_of_paths_of_their_own_share_a_gateway(tmp_path: Path) -> None:
    for name, own in (("a", True), ("b", True), ("c", False)):
        write(tmp_path, name, {"spec.router.gateway": {"parentRef": {"name": "front"}, "ownPath": own}})
    result = rendered("-f", str(tmp_path))
    assert (result.exit_code, result.stderr) == (0, "")
    routes = [document for document in yaml.safe_load_all(result.stdout) if document["kind"] == "HTTPRoute"]
    paths = [route["spec"]["rules"][0]["matches"][0]["path"]["value"] for route in routes]
    assert [path.removesuffix("/v1/models") for path in paths[::2]] == ["/default/a", "/default/b", ""]


def test_images_from_another_registry_and_one_of_its_own(tmp_path: Path) -> None:
    result = rendered(
        *("-f", write(tmp_path, "one", {})),
        *("--image-registry", "mirror.example", "--image", "pickerLlmD=own.example/picker:1"),
    )
    pods = [
        document["spec"]["template"]["spec"]
        for document in yaml.safe_load_all(result.stdout)
        if _is_pods(document)
    ]
    images = [box["image"] for pod in pods for box in [*pod.get("initContainers", ()), *pod["containers"]]]
    assert images == [
        f"mirror.example/kvtier/connector:{CONNECTOR_VERSION}",
        f"mirror.example/{doctor_image()}",
        "mirror.example/vllm/vllm-openai:v0.32.0",
        "own.example/picker:1",
    ]


def test_secrets_to_pull_with_stand_after_the_resource_s_own(tmp_path: Path) -> None:
    path = write(tmp_path, "one", {"spec.imagePullSecrets": [{"name": "own"}]})
    result = rendered("-f", path, "--image-pull-secret", "mirror")
    pods = [
        document["spec"]["template"]["spec"]
        for document in yaml.safe_load_all(result.stdout)
        if _is_pods(document)
    ]
    assert [pod["imagePullSecrets"] for pod in pods] == [[{"name": "own"}, {"name": "mirror"}]] * 2


def _is_pods(document: dict[str, Any]) -> bool:
    return bool(document["kind"] == "Deployment")
