"""`kvtier doctor` as a person and a pod meet it; what it finds on a real machine is in tests/node."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result
from tests.cases.planning import resource

from kvtier_operator.cli.doctor import doctor
from kvtier_operator.cli.doctor_local import demands_here
from kvtier_operator.errors import InvalidInputError
from kvtier_operator.planning.observed import Observed
from kvtier_operator.planning.plan import Plan
from kvtier_operator.planning.planner import make_plan
from kvtier_operator.planning.pod.demands import Demands, HugepagesDemand, VolumeDemand

MIB, GIB = 1 << 20, 1 << 30
LITTLE = Demands(memory_bytes=MIB, shm_bytes=0)
FAR_TOO_MUCH = Demands(memory_bytes=1 << 60, shm_bytes=0)


def in_pod(log: Path, demands: str | None, **environment: str) -> Result:
    given = environment | ({"KVTIER_DEMANDS": demands} if demands is not None else {})
    arguments = ["--in-pod", "--termination-log", str(log)]
    return CliRunner().invoke(doctor, arguments, env=given, catch_exceptions=False)


def test_a_pod_that_has_what_it_needs(tmp_path: Path) -> None:
    log = tmp_path / "termination-log"
    result = in_pod(log, LITTLE.to_json())
    assert result.exit_code == 0
    assert result.stdout.startswith("Pass  memory: 1 MiB needed, ")
    assert json.loads(log.read_text()) == {"outcome": "Pass"}


def test_a_pod_for_a_program(tmp_path: Path) -> None:
    arguments = ["--in-pod", "--termination-log", str(tmp_path / "log"), "-o", "json"]
    result = CliRunner().invoke(doctor, arguments, env={"KVTIER_DEMANDS": LITTLE.to_json()})
    assert json.loads(result.stdout)["findings"][0]["check"] == "memory"


def test_a_pod_that_lacks_something(tmp_path: Path) -> None:
    log = tmp_path / "termination-log"
    result = in_pod(log, FAR_TOO_MUCH.to_json(), NODE_NAME="gpu-3")
    assert result.exit_code == 1
    [line] = log.read_text().splitlines()
    assert line.startswith("memory: 1,048,576 TiB needed, ")
    assert f"Fail  {line}" in result.stdout.splitlines()


def test_a_termination_log_that_cannot_be_written_changes_no_verdict(tmp_path: Path) -> None:
    result = in_pod(tmp_path / "none" / "log", LITTLE.to_json())
    assert result.exit_code == 0
    assert "No such file" in result.stderr


@pytest.mark.parametrize("demands", [None, "{}", "no json"])
def test_a_pod_that_is_not_kvtier_s(tmp_path: Path, demands: str | None) -> None:
    with pytest.raises(InvalidInputError, match="KVTIER_DEMANDS"):
        in_pod(tmp_path / "log", demands)


def test_without_a_resource_there_is_nothing_to_check() -> None:
    result = CliRunner().invoke(doctor, [], catch_exceptions=False)
    assert result.exit_code == 2
    assert "give -f FILE, the NAME of a KVCacheTier, or --in-pod" in result.stderr


def write(folder: Path, **spec: Any) -> str:  # noqa: ANN401 - as in YAML
    given = {
        "model": {"name": "Qwen/Qwen3-0.6B"},
        "engine": {"device": "cpu", "blockSize": 32, "maxModelLen": 1024, **spec.pop("engine", {})},
        "tiers": {"cpu": {"capacity": "64Mi"}},
        **spec,
    }
    document = {"apiVersion": "kvtier.dev/v1alpha1", "kind": "KVCacheTier", "metadata": {"name": "small"}}
    path = folder / "cr.yaml"
    path.write_text(yaml.safe_dump(document | {"spec": given}))
    return str(path)


def here(path: str) -> Result:
    return CliRunner().invoke(doctor, ["-f", path, "--no-hub"], catch_exceptions=False)


def test_this_machine_for_a_resource(tmp_path: Path) -> None:
    tiny = {"engine": {"kvCacheMemory": "128Mi", "resources": {"requests": {"memory": "1Mi"}}}}
    result = here(write(tmp_path, **tiny))
    assert result.exit_code == 0, result.stdout
    title, *verdicts = result.stdout.splitlines()
    assert title.endswith("cr.yaml: small")
    assert [line.split(":")[0] for line in verdicts] == ["Pass  memory", "Pass  shared-memory"]


def test_this_machine_is_too_small(tmp_path: Path) -> None:
    result = here(write(tmp_path, replicas=1000))
    assert result.exit_code == 1
    assert "Fail  memory: " in result.stdout
    assert "lower spec.tiers.cpu.capacity" in result.stdout


@pytest.mark.parametrize(("replicas", "exit_code", "outcome"), [(1, 0, "Pass"), (1000, 1, "Fail")])
def test_this_machine_for_a_program(tmp_path: Path, replicas: int, exit_code: int, outcome: str) -> None:
    tiny = {"engine": {"kvCacheMemory": "128Mi", "resources": {"requests": {"memory": "1Gi"}}}}
    path = write(tmp_path, replicas=replicas, **tiny)
    result = CliRunner().invoke(doctor, ["-f", path, "--no-hub", "-o", "json"], catch_exceptions=False)
    [found] = json.loads(result.stdout)
    assert (result.exit_code, found["outcome"]) == (exit_code, outcome)
    assert (found["source"], found["namespace"], found["name"]) == (path, "default", "small")
    lines = [f"{one['outcome']:<4}  {one['check']}: {one['message']}" for one in found["findings"]]
    assert lines[0].startswith(f"{outcome}  memory: ")


def test_a_plan_that_is_refused_is_not_looked_at(tmp_path: Path) -> None:
    result = here(write(tmp_path, backend="Native", engine={"shmSize": "1Mi"}))
    assert result.exit_code == 1
    assert "Fail  shared-memory: spec.engine.shmSize: 1 MiB" in result.stdout
    assert "memory: " not in result.stdout.replace("shared-memory: ", "")


def test_a_store_that_kvtier_makes_is_started_here(tmp_path: Path) -> None:
    remote = {"managed": {}, "capacity": "64Mi"}
    tiers = {"cpu": {"capacity": "64Mi"}, "remote": remote}
    said = here(write(tmp_path, tiers=tiers)).stdout
    [line] = [line for line in said.splitlines() if "store: " in line]
    assert line.startswith("Pass  store: ")
    assert line.endswith("will run it")


def plan(**spec: Any) -> Plan:  # noqa: ANN401 - as in YAML
    return make_plan(resource(**spec), Observed())


def test_replicas_share_one_machine(tmp_path: Path) -> None:
    cpu = {"capacity": "10Gi", "hugepages": {"policy": "Require"}, "memlock": {"policy": "Require"}}
    one = plan(tiers={"cpu": cpu}, replicas=3)
    machine, each = demands_here(one), one.doctor.demands
    assert machine.hugepages == HugepagesDemand(2 * MIB, 3 * 5120, required=True)
    assert machine.memory_bytes == 3 * each.memory_bytes  # huge pages are no ordinary memory
    assert machine.shm_bytes == 3 * each.shm_bytes
    assert machine.memlock == each.memlock  # a limit of each process

    folder = tmp_path / "made" / "at" / "start"
    disk = {"capacity": "1Gi", "volume": {"hostPath": {"path": str(folder)}}}
    volumes = demands_here(plan(backend="Native", replicas=2, tiers={"disk": disk})).volumes
    assert volumes == (VolumeDemand(str(tmp_path), 2 * GIB, direct_io=False),)
    disk["volume"] = {"emptyDir": {}}
    volumes = demands_here(plan(backend="Native", tiers={"disk": disk}), tmp_path).volumes
    assert volumes == (VolumeDemand(str(tmp_path), GIB, direct_io=False),)
