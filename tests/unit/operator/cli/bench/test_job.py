"""`kvtier bench job`: the pod is the engine's, the run is bounded, and what cannot be measured is named."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result
from tests.cases.kvcachetier import DISK, REMOTE, document

from kvtier_connector.bench.choices import KVTIER, VLLM
from kvtier_connector.bench.vllm_arguments import ServeOptions
from kvtier_operator.api.quantity import parse_bytes
from kvtier_operator.api.spec.tiers import Backend
from kvtier_operator.cli.bench.job import job
from kvtier_operator.cli.inputs.load import load_resources
from kvtier_operator.errors import InvalidInputError
from kvtier_operator.planning.backends import traits_of
from kvtier_operator.planning.objects import build_objects
from kvtier_operator.planning.observed import Observed
from kvtier_operator.planning.planner import make_plan
from kvtier_operator.planning.units import GIB

PAGES = {"spec.tiers.cpu.hugepages": {"policy": "Require", "pageSize": "1Gi"}}


def write(folder: Path, changes: Mapping[str, object], name: str = "measured") -> str:
    path = folder / f"{name}.yaml"
    path.write_text(json.dumps(document({"metadata.name": name, **changes})))
    return str(path)


def run(*arguments: str) -> Result:
    return CliRunner().invoke(job, ["--no-hub", *arguments])


def made(folder: Path, changes: Mapping[str, object], *arguments: str) -> dict[str, Any]:
    result = run("-f", write(folder, changes), *arguments)
    assert result.exit_code == 0, result.output
    [found] = yaml.safe_load_all(result.stdout)
    assert isinstance(found, dict)
    return found


def pod(found: dict[str, Any]) -> dict[str, Any]:
    spec: dict[str, Any] = found["spec"]["template"]["spec"]
    return spec


def container(found: dict[str, Any]) -> dict[str, Any]:
    [only] = pod(found)["containers"]
    assert isinstance(only, dict)
    return only


def options(found: dict[str, Any]) -> dict[str, str]:
    """The bench's own options, without vLLM's arguments after `--`."""
    arguments = container(found)["args"]
    own = arguments[: arguments.index("--")]
    return dict(zip(own[::2], own[1::2], strict=True))


def deployment(path: str) -> dict[str, Any]:
    [(_, resource)] = load_resources([path])
    [found] = [
        document
        for document in build_objects(make_plan(resource, Observed()))
        if document["kind"] == "Deployment" and document["metadata"]["name"].endswith("-engine")
    ]
    return found


def test_it_runs_once_and_not_for_ever(tmp_path: Path) -> None:
    found = made(tmp_path, {}, "--deadline", "600")
    assert (found["apiVersion"], found["kind"]) == ("batch/v1", "Job")
    spec = found["spec"]
    assert (spec["backoffLimit"], spec["activeDeadlineSeconds"]) == (0, 600)
    assert spec["ttlSecondsAfterFinished"] > 0
    assert pod(found)["restartPolicy"] == "Never"


def test_the_pod_is_the_engine_s(tmp_path: Path) -> None:
    changes: dict[str, object] = {
        **PAGES,
        "spec.tiers.cpu.memlock": {"policy": "Require"},
        "spec.engine": {
            "image": "registry.example/engine:1",
            "tensorParallelSize": 2,
            "nodeSelector": {"pool": "gpu"},
            "tolerations": [{"key": "gpu", "operator": "Exists"}],
            "affinity": {"podAntiAffinity": {}},
            "resources": {"requests": {"cpu": "8"}},
            "env": [{"name": "NCCL_DEBUG", "value": "INFO"}],
        },
    }
    mine = pod(made(tmp_path, changes, "--sides", "none,kvtier"))
    theirs = deployment(write(tmp_path, changes))["spec"]["template"]["spec"]
    alike = ("initContainers", "securityContext", "nodeSelector", "tolerations", "affinity")
    assert {field: mine[field] for field in alike} == {field: theirs[field] for field in alike}
    [bench], [engine] = mine["containers"], theirs["containers"]
    for field in ("image", "securityContext"):
        assert bench[field] == engine[field]
    # its model is drawn, not downloaded
    assert mine["volumes"] == [volume for volume in theirs["volumes"] if volume["name"] != "weights"]
    assert bench["volumeMounts"] == [mount for mount in engine["volumeMounts"] if mount["name"] != "weights"]
    assert engine["resources"]["requests"].pop("ephemeral-storage") == "69762Mi"
    assert bench["resources"] == engine["resources"]
    engine["env"].remove({"name": "HF_HOME", "value": "/var/lib/kvtier/huggingface"})
    assert [each for each in bench["env"] if each["name"] != "COLUMNS"] == engine["env"]
    assert bench["args"][bench["args"].index("--") + 1 :] == engine["args"][1:]
    assert bench["resources"]["limits"]["nvidia.com/gpu"] == "2"
    assert bench["resources"]["limits"]["hugepages-1Gi"] == "100Gi"
    assert "ports" not in bench
    assert not [field for field in bench if field.endswith("Probe")]


def test_no_service_and_no_picker_finds_its_pod(tmp_path: Path) -> None:
    found = made(tmp_path, {})
    labels = found["spec"]["template"]["metadata"]["labels"]
    selector = deployment(write(tmp_path, {}))["spec"]["selector"]["matchLabels"]
    assert not selector.items() <= labels.items()


def test_what_is_left_behind(tmp_path: Path) -> None:
    only = container(made(tmp_path, {}))
    arguments = only["args"]
    assert only["command"] == ["python3", "-m", "kvtier_connector.bench"]
    assert arguments[arguments.index("--termination-log") + 1] == only["terminationMessagePath"]
    assert only["terminationMessagePolicy"] == "FallbackToLogsOnError"


def test_what_is_measured(tmp_path: Path) -> None:
    first = options(made(tmp_path, {}))
    assert (first["--only"], first["--shape"]) == ("ttft,workloads", "qwen3-32b")
    assert (first["--sides"], first["--turns"]) == ("none,vllm,kvtier", "2")
    asked = ("--only", "ttft", "--shape", "llama-3.1-8b", "--sides", "kvtier", "--turns", "1")
    other = options(made(tmp_path, {}, *asked))
    assert [other[option] for option in asked[::2]] == [*asked[1::2]]


def test_the_bench_reads_the_tier_that_is_planned(tmp_path: Path) -> None:
    arguments = container(made(tmp_path, PAGES))["args"]
    serve_options = ServeOptions.read(arguments[arguments.index("--") + 1 :])
    assert serve_options.transfer is not None
    extra = serve_options.transfer["kv_connector_extra_config"]
    assert (extra["cpu_capacity_bytes"], extra["hugepages"]) == (100 * GIB, "Require")
    assert (extra["blocks_per_chunk"], serve_options.block_tokens) == (4, None)  # of vLLM's own 16 tokens


def memory_bytes(found: dict[str, Any]) -> int:
    resources = container(found)["resources"]
    assert resources["limits"]["memory"] == resources["requests"]["memory"]
    return parse_bytes(resources["limits"]["memory"])


def shm(found: dict[str, Any]) -> str:
    [size] = [volume["emptyDir"]["sizeLimit"] for volume in pod(found)["volumes"] if volume["name"] == "shm"]
    return str(size)


def test_with_huge_pages_vllm_s_own_tier_has_memory_besides(tmp_path: Path) -> None:
    alone, both = made(tmp_path, PAGES, "--sides", "kvtier"), made(tmp_path, PAGES)
    assert (shm(alone), shm(both)) == ("1Gi", "101Gi")
    for found in (alone, both):
        assert container(found)["resources"]["limits"]["hugepages-1Gi"] == "100Gi"
    assert 100 * GIB <= memory_bytes(both) - memory_bytes(alone) < 101 * GIB


def test_without_them_both_have_their_tier_in_the_same_memory(tmp_path: Path) -> None:
    alone, both = made(tmp_path, {}, "--sides", "kvtier"), made(tmp_path, {})
    assert shm(both) == "101Gi"
    assert 0 <= memory_bytes(both) - memory_bytes(alone) < GIB


def test_the_doctor_looks_for_the_room_that_both_need(tmp_path: Path) -> None:
    _, doctor = pod(made(tmp_path, PAGES))["initContainers"]
    demands = json.loads(doctor["env"][0]["value"])
    assert demands["shm_bytes"] == 101 * GIB
    assert demands["memory_bytes"] > 101 * GIB


def test_a_disk_of_the_pod_s_own_is_measured_and_one_that_stays_is_not(tmp_path: Path) -> None:
    own = made(tmp_path, {"spec.tiers.disk": DISK})
    assert "disk_path" in " ".join(container(own)["args"])
    shared = {**DISK, "volume": {"persistentVolumeClaim": {"claimName": "kv"}}}
    path = write(tmp_path, {"spec.tiers.disk": shared})
    result = run("-f", path, "--image-registry", "registry.example")
    assert result.exit_code == 0
    assert result.stderr.startswith(f"{path}: spec.tiers.disk: left out: its persistentVolumeClaim")
    assert result.stderr.count("\n") == 1
    [found] = yaml.safe_load_all(result.stdout)
    assert "disk_path" not in " ".join(container(found)["args"])
    assert [volume["name"] for volume in pod(found)["volumes"]] == [
        "shm",
        "home",
        "kvtier-payload",
        "control",
    ]


def test_the_engines_store_is_not_measured(tmp_path: Path) -> None:
    path = write(tmp_path, {"spec.tiers.remote": REMOTE})
    result = run("-f", path, "--image-registry", "registry.example")
    assert (result.exit_code, result.stderr) == (
        0,
        f"{path}: spec.tiers.remote: left out: its store is the engines' own\n",
    )
    assert "remote_url" not in result.stdout


def test_on_a_cpu_there_is_one_engine_and_the_demo_s_sizes(tmp_path: Path) -> None:
    changes: dict[str, object] = {"spec.engine": {"device": "cpu", "blockSize": 32, "maxModelLen": 16_384}}
    found = options(made(tmp_path, changes))
    assert found["--shape"] == "demo"
    assert "--sides" not in found
    assert options(made(tmp_path, changes, "--shape", "qwen3-0.6b"))["--shape"] == "qwen3-0.6b"


def test_its_namespace(tmp_path: Path) -> None:
    changes: dict[str, object] = {"metadata.namespace": "serving"}
    assert made(tmp_path, changes)["metadata"]["namespace"] == "serving"
    assert made(tmp_path, changes, "-n", "bench")["metadata"]["namespace"] == "bench"
    assert "is not a namespace" in run("-f", write(tmp_path, changes), "-n", "Bench").output


def test_several_resources(tmp_path: Path) -> None:
    result = run("-f", write(tmp_path, {}, "a"), "-f", write(tmp_path, {}, "b"))
    assert [document["metadata"]["name"] for document in yaml.safe_load_all(result.stdout)] == [
        "a-bench",
        "b-bench",
    ]


@pytest.mark.parametrize(
    ("changes", "arguments", "line"),
    [
        (
            {"spec.backend": "LMCache"},
            (),
            "spec.backend: LMCache: the bench measures KVTier's connector beside vLLM's own and none; give a",
        ),
        ({"spec.backend": "Native"}, (), "spec.backend: Native: the bench measures"),
        (
            {"spec.model.name": "deepseek-ai/DeepSeek-V3"},
            (),
            "spec.model.name: the bench has no sizes of deepseek-ai/DeepSeek-V3; choose the nearest with",
        ),
        (
            {"spec.engine.tensorParallelSize": 8},
            ("--shape", "demo"),
            "spec.engine.tensorParallelSize: 8 ranks cannot share the 12 heads of demo",
        ),
        (
            {"spec.engine": {"device": "cpu", "blockSize": 32}},
            ("--sides", "none"),
            "spec.engine.device: cpu: --sides compares engines on a GPU",
        ),
        ({"spec.teirs": {}}, (), "spec.teirs: "),
    ],
)
def test_what_cannot_be_measured_is_said_in_one_line(
    tmp_path: Path, changes: dict[str, object], arguments: tuple[str, ...], line: str
) -> None:
    path = write(tmp_path, changes)
    result = run("-f", path, *arguments)
    assert isinstance(result.exception, InvalidInputError)
    assert str(result.exception).startswith(f"{path}: {line}")
    assert "\n" not in str(result.exception)
    assert result.stdout == ""


def test_a_refused_resource_prints_nothing(tmp_path: Path) -> None:
    good = write(tmp_path, {}, "good")
    bad = write(tmp_path, {"spec.engine.extraArgs": ["--block-size", "32"]}, "bad")
    result = run("-f", good, "-f", bad)
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.startswith(f"{bad}: spec.engine.extraArgs")


def test_the_planner_s_sides_are_those_of_the_bench() -> None:
    sides = {traits_of(backend).bench_side for backend in Backend}
    assert {KVTIER, VLLM} <= sides <= {KVTIER, VLLM, None}
