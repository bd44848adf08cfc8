"""`kvtier plan` as a program or a person meets it."""

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result
from tests.cases.planning import MODEL

from kvtier_operator.cli.init import init
from kvtier_operator.cli.plan import plan
from kvtier_operator.errors import InvalidInputError

CONFIG = {"num_hidden_layers": 8, "num_attention_heads": 12, "num_key_value_heads": 2, "hidden_size": 768}


def write(folder: Path, name: str = "qwen", *, model: str = MODEL, **spec: Any) -> str:  # noqa: ANN401 - YAML
    document = {
        "apiVersion": "kvtier.dev/v1alpha1",
        "kind": "KVCacheTier",
        "metadata": {"name": name},
        "spec": {"model": {"name": model}, "tiers": {"cpu": {"capacity": "100Gi"}}, **spec},
    }
    path = folder / f"{name}.yaml"
    path.write_text(yaml.safe_dump(document), encoding="utf-8")
    return str(path)


def run(*arguments: str) -> Result:
    return CliRunner().invoke(plan, [*arguments, "--no-hub"], catch_exceptions=False)


def test_an_argument_in_braces_that_is_no_json(tmp_path: Path) -> None:
    template = "{% for m in messages %}{{ m }}{% endfor %}"
    result = run("-f", write(tmp_path, engine={"extraArgs": ["--chat-template", template]}), "-v")
    assert template in result.stdout


def test_json_has_the_names_that_programs_rely_on(tmp_path: Path) -> None:
    pages = {"cpu": {"capacity": "100Gi", "hugepages": {"policy": "Require", "pageSize": "1Gi"}}}
    result = run("-f", write(tmp_path, tiers=pages, engine={"tensorParallelSize": 2}), "-o", "json")
    assert result.exit_code == 0
    report = json.loads(result.stdout)
    assert report["geometry"]["kvBytesPerToken"] == 262_144
    assert "Qwen/Qwen3-32B" in report["geometry"]["source"]
    assert report["tiers"]["cpu"] == {
        "bytes": 107_374_182_400,
        "bytesPerRank": 53_687_091_200,
        "tokens": 409_600,
        "hugepages": {"pageSize": "1Gi", "pages": 100},
    }
    assert report["tiers"]["disk"] is None
    assert report["router"]["flavor"] == "llm-d"
    assert report["router"]["tokensPerEntry"] == 64
    assert report["router"]["entries"] == {"gpuPrefix": None, "cpuPrefix": 6_400, "diskPrefix": None}
    assert "6400" in report["router"]["config"]
    assert report["router"]["image"] == "ghcr.io/llm-d/llm-d-router-endpoint-picker:v0.10.0"
    assert report["router"]["replicas"] == 1
    assert report["router"]["requests"] == {"cpu": "500m", "memory": "896Mi"}
    assert report["router"]["limits"] == {"memory": "1792Mi"}
    assert report["geometry"]["weightsBytes"] == 65_524_246_528
    assert {"args", "env", "files"} <= report["engine"].keys()
    assert report["engine"]["args"][0] == MODEL
    assert report["pod"]["limits"]["hugepages-1Gi"] == "100Gi"
    assert {"requests", "limits", "memory"} <= report["pod"].keys()
    for line in report["pod"]["memory"]:
        assert line.keys() == {"what", "bytes", "why"}
    for check in report["checks"]:
        assert {"name", "outcome", "reason", "message"} <= check.keys()
        assert check["outcome"] in {"Pass", "Warn", "Reject"}


def test_a_disk_tier_has_bytes_and_tokens(tmp_path: Path) -> None:
    tiers = {"cpu": {"capacity": "100Gi"}, "disk": {"capacity": "1Ti", "volume": {"emptyDir": {}}}}
    result = run("-f", write(tmp_path, backend="LMCache", tiers=tiers), "-o", "json")
    disk = json.loads(result.stdout)["tiers"]["disk"]
    assert (disk["bytes"], disk["tokens"]) == (1024**4, 4_194_304)


def test_a_rejected_plan_is_printed_all_the_same(tmp_path: Path) -> None:
    path = write(tmp_path, engine={"extraArgs": ["--kv-offloading-size=10"]})
    for output in ("json", "text"):
        result = run("-f", path, "-o", output)
        assert result.exit_code == 1
        assert "spec.engine.extraArgs[0]" in result.stdout


def test_several_resources(tmp_path: Path) -> None:
    one, other = write(tmp_path, "one"), write(tmp_path, "other", model="Qwen/Qwen3-8B")
    reports = json.loads(run("-f", one, "-f", other, "-o", "json").stdout)
    assert [report["resource"]["name"] for report in reports] == ["one", "other"]
    text = run("-f", str(tmp_path)).stdout
    assert text.index("Qwen/Qwen3-32B") < text.index("Qwen/Qwen3-8B")


def test_a_model_that_nothing_knows(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match=r"spec\.model\.name: nothing knows"):
        run("-f", write(tmp_path, model="nobody/nothing"))


def test_a_config_by_hand_with_the_weights_beside_it(tmp_path: Path) -> None:
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(CONFIG), encoding="utf-8")
    (folder / "model.safetensors").write_bytes(bytes(1234))
    path = write(tmp_path, model="nobody/nothing")
    report = json.loads(run("-f", path, "--model-config", str(folder / "config.json"), "-o", "json").stdout)
    assert report["geometry"]["kvBytesPerToken"] == 2 * 8 * 2 * 64 * 2
    assert {figure["name"]: figure["value"] for figure in report["figures"]}["weights bytes"] == 1234


def test_a_model_in_a_local_folder(tmp_path: Path) -> None:
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(CONFIG), encoding="utf-8")
    report = json.loads(run("-f", write(tmp_path, model=str(folder)), "-o", "json").stdout)
    assert report["geometry"]["kvBytesPerToken"] == 4096
    assert report["geometry"]["source"] == str(folder / "config.json")


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, "cannot be read"),
        ("{", "not JSON"),
        ("[]", "no JSON object"),
        ('{"a": 1}', "num_hidden_layers"),
    ],
)
def test_a_config_that_is_none(tmp_path: Path, content: str | None, said: str) -> None:
    config = tmp_path / "config.json"
    if content is not None:
        config.write_text(content, encoding="utf-8")
    with pytest.raises(InvalidInputError, match=said) as refused:
        run("-f", write(tmp_path), "--model-config", str(config))
    assert "\n" not in str(refused.value)


def test_this_machine_counts_only_when_asked_for(tmp_path: Path) -> None:
    path = write(tmp_path, tiers={"cpu": {"capacity": "60Ti"}})
    assert run("-f", path).exit_code == 0
    result = run("-f", path, "--local")
    assert result.exit_code == 1
    assert "TierLargerThanMachine" in result.stdout


def test_text_has_no_colours_unless_it_is_for_a_terminal(tmp_path: Path) -> None:
    assert "\x1b[" not in run("-f", write(tmp_path)).stdout


@pytest.mark.parametrize(("options", "loaded"), [([], "[]"), (["-v"], "['jinja2']"), (["-o", "json"], "[]")])
def test_it_loads_no_engine_no_client_and_no_routes(tmp_path: Path, options: list[str], loaded: str) -> None:
    program = (
        "import sys\n"
        "from kvtier_operator.cli.plan import plan\n"
        "plan(sys.argv[1:], standalone_mode=False)\n"
        "heavy = {'vllm', 'torch', 'kopf', 'kubernetes', 'aiohttp', 'numpy', 'huggingface_hub', 'rich'}\n"
        "heavy |= {'transformers', 'asyncio', 'jinja2', 'kvtier_operator.planning.router.route_order'}\n"
        "print(sorted(heavy & sys.modules.keys()), file=sys.stderr)\n"
    )
    done = subprocess.run(  # noqa: S603 - our own program
        [sys.executable, "-c", program, "-f", write(tmp_path), *options],
        check=True,
        capture_output=True,
        text=True,
    )
    assert done.stderr.strip() == loaded


def test_routes_that_would_hide_each_other_are_told_before_the_reports(tmp_path: Path) -> None:
    router = {"gateway": {"parentRef": {"name": "front"}}}
    paths = [write(tmp_path, name, router=router) for name in ("a", "b")]
    said = f"{paths[0]} and {paths[1]}: RouteHidden spec.router.gateway: default/a and default/b both ask"
    result = run("-f", paths[0], "-f", paths[1], "-o", "json")
    assert (result.exit_code, len(json.loads(result.stdout))) == (1, 2)
    assert result.stderr.startswith(said)
    text = run("-f", paths[0], "-f", paths[1])
    assert (text.exit_code, text.stderr) == (1, "")
    assert text.stdout.startswith(said)


def test_a_config_map_in_a_file_beside_the_resource(tmp_path: Path) -> None:
    config = {"num_hidden_layers": 4, "num_attention_heads": 4, "head_dim": 64}
    cr, map_ = tmp_path / "cr.yaml", tmp_path / "map.yaml"
    cr.write_text(
        "apiVersion: kvtier.dev/v1alpha1\nkind: KVCacheTier\nmetadata: {name: qwen}\n"
        "spec: {model: {name: x/y, configRef: {name: its-config}}, tiers: {cpu: {capacity: 1Gi}}}\n",
        encoding="utf-8",
    )
    map_.write_text(
        json.dumps(
            {
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "metadata": {"name": "its-config"},
                "data": {"config.json": json.dumps(config)},
            }
        ),
        encoding="utf-8",
    )
    done = run("-f", str(cr), "-f", str(map_), "-o", "json")
    assert done.exit_code == 0, done.output
    assert f"ConfigMap its-config of {map_}" in done.output
    with pytest.raises(InvalidInputError, match=r"no ConfigMap default/its-config is in the files given"):
        run("-f", str(cr))


def test_config_maps_alone_are_no_resources(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / f"{name}.yaml").write_text(
            f"kind: ConfigMap\nmetadata: {{name: {name}}}\n", encoding="utf-8"
        )
    with pytest.raises(InvalidInputError, match="have no KVCacheTier; write one"):
        run("-f", str(tmp_path / "one.yaml"), "-f", str(tmp_path / "two.yaml"))


def test_a_screen_unless_more_is_asked_for(tmp_path: Path) -> None:
    path = write(tmp_path, engine={"gpu": "h100", "tensorParallelSize": 2})
    short, whole = run("-f", path).stdout, run("-f", path, "-v").stdout
    assert len(short.splitlines()) <= 24  # what a usual terminal shows
    assert short.endswith("\n-v for every number and check\n")
    assert "✓ tier-pays" in whole
    assert "✓" not in short
    [document] = yaml.safe_load_all(run("-f", path, "-o", "yaml").stdout)
    assert document == json.loads(run("-f", path, "-o", "json").stdout)


def test_other_values_than_a_file_has(tmp_path: Path) -> None:
    disk = {"capacity": "1Ti", "volume": {"hostPath": {"path": "/mnt"}}}
    path = write(tmp_path, tiers={"cpu": {"capacity": "100Gi"}, "disk": disk})
    asked = ["-f", path, "--gpu", "h200", "--cpu", "200Gi", "--disk", "2Ti", "--set", "spec.replicas=3"]
    changed = json.loads(run(*asked, "-o", "json").stdout)
    assert {tier: changed["tiers"][tier]["bytes"] >> 30 for tier in ("cpu", "disk")} == {
        "cpu": 200,
        "disk": 2048,
    }
    assert "3 pods" in run(*asked).stdout
    assert "hostPath: /mnt" in run(*asked).stdout
    without = json.loads(run("-f", path, "--set", "spec.tiers.disk=null", "-o", "json").stdout)
    assert without["tiers"]["disk"] is None
    with pytest.raises(
        InvalidInputError, match=rf"^{re.escape(path)} with the options: spec\.engine\.blockSize"
    ):
        run("-f", path, "--set", "spec.engine.blockSize=-1")


def test_a_plan_without_a_file_is_that_of_the_first_resource(tmp_path: Path) -> None:
    options = ["--model", MODEL, "--gpu", "h100", "--tp", "2", "--cpu", "100Gi", "--backend", "LMCache"]
    path = tmp_path / "cr.yaml"
    assert CliRunner().invoke(init, [*options, "--write-to", str(path)]).exit_code == 0
    assert run("-f", str(path)).stdout == run(*options).stdout
    again = CliRunner().invoke(init, [*options, "--write-to", str(path)])
    assert str(again.exception) == f"{path}: is there already, and init replaces nothing: name another file"
    nowhere = CliRunner().invoke(init, [*options, "--write-to", str(tmp_path / "none" / "cr.yaml")])
    assert isinstance(nowhere.exception, InvalidInputError)
    assert "cannot be written: No such file" in str(nowhere.exception)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (
            ["--cpu", "1Gi", "--set", "spec.tiers.cpu.capacty=1"],
            "the options: spec.tiers.cpu.capacty: unknown field",
        ),
        (["--cpu", "1Gi", "--gpu", "h1000"], "did you mean h100?"),
        (["--cpu", "1Gi", "--set", "spec.tiers"], "--set: 'spec.tiers' sets nothing; write PATH=VALUE"),
        (
            ["--cpu", "1Gi", "--set", "spec.model.name.x=1"],
            "spec.model.name.x: x is nothing that can be set there",
        ),
        (
            ["--cpu", "1Gi", "--set", "spec.engine.env[3].name=x"],
            "spec.engine.env[3].name: there is no item 3; set the whole list, as in spec.engine.env=[...]",
        ),
        (["--cpu", "1Gi", "--set", "spec.tiers.cpu.memlock=Require"], "its fields are policy"),
        (["--node-memory", "30Gi"], "leave 3.14 GiB of memory to each of 8 engines"),
    ],
)
def test_options_that_say_what_cannot_be(options: list[str], said: str) -> None:
    with pytest.raises(InvalidInputError) as refused:
        run("--model", MODEL, *options)
    assert said in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_model_alone_has_no_size() -> None:
    result = run("--model", MODEL)
    assert (result.exit_code, "give the CPU tier's size by --cpu" in result.output) == (2, True)
    sized = run("--model", MODEL, "--gpu", "h100", "--tp", "2", "--node-memory", "1Ti", "-o", "json")
    report = json.loads(sized.stdout)
    assert report["tiers"]["cpu"]["bytes"] == 231 << 30
    assert (report["node"]["engines"], report["node"]["largestCpuCapacity"]) == (4, "231Gi")


def test_several_resources_are_added_up(tmp_path: Path) -> None:
    one = write(tmp_path, "one", replicas=3, engine={"tensorParallelSize": 2})
    other = write(tmp_path, "other", autoscaling={"maxReplicas": 2, "target": "queue", "targetValue": 1})
    total = "all 2 resources, at most: 5 engine pods, 8 nvidia.com/gpu, "
    for options in ([], ["-v"]):
        assert total in run("-f", one, "-f", other, *options).stdout


def test_what_pods_of_others_are_given(tmp_path: Path) -> None:
    attach = {"podSelector": {"matchLabels": {"app": "chat"}}}
    of_model = write(tmp_path, "one", attach=attach)
    of_any = Path(write(tmp_path, "other", attach=attach))
    text = of_any.read_text(encoding="utf-8")
    of_any.write_text(text.replace(f"  model:\n    name: {MODEL}\n", ""), encoding="utf-8")
    own = json.loads(run("-f", write(tmp_path), "-o", "json").stdout)
    known, unknown = json.loads(run("-f", of_model, "-f", str(of_any), "-o", "json").stdout)
    assert known["attach"]["tiers"]["cpu"] == {"bytes": 100 << 30, "tokens": own["tiers"]["cpu"]["tokens"]}
    assert unknown["attach"]["tiers"]["cpu"]["tokens"] is None
    assert known["attach"]["memoryBytes"] == sum(line["bytes"] for line in known["attach"]["memory"])
    for path, said in ((of_model, "409,600"), (str(of_any), "tokens are known with spec.model")):
        shown = run("-f", path)
        assert (shown.exit_code, said in shown.stdout, "app=chat" in shown.stdout) == (0, True, True)
    refused = run("-f", of_model, "--node-memory", "1Ti")
    assert (refused.exit_code, "in pods of others" in refused.output) == (2, True)
