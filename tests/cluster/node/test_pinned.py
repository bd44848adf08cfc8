"""Huge pages, locked memory and limits of the Plan, as a real node's kernel sees them in the engine's pod."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.cluster.harness.installed import Site
from tests.cluster.harness.node.processes import PodProcess, pod_processes

from kvtier_operator.api.parse import parse_resource
from kvtier_operator.planning.observed import Observed
from kvtier_operator.planning.planner import make_plan
from kvtier_operator.planning.units import MIB

RESOURCE = Path(__file__).with_name("pinned.yaml")
READY_S = 480
CAPACITY_BYTES = 256 * MIB


@pytest.fixture(scope="module", params=["hugepages", "memlock"])
def engine(site: Site, request: pytest.FixtureRequest) -> Iterator["Engine"]:
    """The resource's engine: on huge pages at first; then the resource is edited to locked 4 KiB pages."""
    document = yaml.safe_load(RESOURCE.read_text())
    if request.param == "memlock":
        document["spec"]["tiers"]["cpu"]["hugepages"] = {"policy": "Off"}
    site.kubectl("apply", "--server-side", "--filename", "-", stdin=json.dumps(document))
    yield Engine(site, document, request.param)
    if request.param == "memlock":
        site.kubectl("delete", "kvct", "pinned", "--wait")


class Engine:
    """The engine's pod, once its resource is Ready as it is now."""

    def __init__(self, site: Site, document: dict[str, Any], pages: str) -> None:
        self.pages, self.site = pages, site
        self.plan = make_plan(parse_resource(document, str(RESOURCE)), Observed())
        generation = site.kubectl.json("get", "kvct", "pinned")["metadata"]["generation"]
        for field in (f"{{.status.observedGeneration}}={generation}", "{.status.readyReplicas}=1"):
            site.kubectl("wait", "kvct/pinned", f"--for=jsonpath={field}", f"--timeout={READY_S}s")
        site.kubectl("rollout", "status", "deployment/pinned-engine", f"--timeout={READY_S}s")
        site.kubectl("wait", "kvct/pinned", "--for=condition=Ready", f"--timeout={READY_S}s")
        self.resource = site.kubectl.json("get", "kvct", "pinned")
        selector = "app.kubernetes.io/component=engine,app.kubernetes.io/instance=pinned"
        (self.pod,) = site.kubectl.json("get", "pods", "--selector", selector)["items"]
        self.processes: list[PodProcess] = pod_processes(self.pod["metadata"]["uid"])


def test_tier_is_in_memory_as_asked_for(engine: Engine) -> None:
    hugetlb = sum(each.hugetlb_bytes for each in engine.processes)
    locked = sum(each.locked_bytes for each in engine.processes)
    if engine.pages == "hugepages":
        assert hugetlb == CAPACITY_BYTES  # hugetlbfs pages are never swapped: nothing is left to lock
    else:
        assert hugetlb == 0
        assert locked >= CAPACITY_BYTES
        (limit,) = {each.memlock_limit_bytes for each in engine.processes}
        assert limit is not None
        assert limit < CAPACITY_BYTES, "the node's limit would do: IPC_LOCK is not shown to be needed"
        assert all(each.may_lock for each in engine.processes)


def test_limits_are_what_the_report_says(engine: Engine) -> None:
    budget = engine.plan.budget
    assert {each.memory_limit_bytes for each in engine.processes} == {
        sum(line.bytes for line in budget.memory)
    }
    assert {each.shm_bytes for each in engine.processes} == {budget.shm_bytes}


def test_doctor_has_looked_before_the_engine_started(engine: Engine) -> None:
    (doctor,) = engine.pod["status"]["initContainerStatuses"]
    ended = doctor["state"]["terminated"]
    assert (ended["exitCode"], json.loads(ended["message"])["outcome"]) == (0, "Pass")


def test_status_says_what_is_there(engine: Engine) -> None:
    conditions = {each["type"]: each["status"] for each in engine.resource["status"]["conditions"]}
    assert conditions == dict.fromkeys(conditions, "True")
    assert engine.resource["status"]["tiers"]["cpu"]["bytes"] == CAPACITY_BYTES


def test_the_running_engine_corrects_what_the_status_says_of_its_device(engine: Engine) -> None:
    """The CPU tier's size is told with the first request, which nobody sends here."""
    jsonpath = "--for=jsonpath={.status.tiers.gpu.source}=Observed"
    engine.site.kubectl("wait", "kvct/pinned", jsonpath, "--timeout=60s")
    gpu = engine.site.kubectl.json("get", "kvct", "pinned")["status"]["tiers"]["gpu"]
    planned = engine.plan.tiers.gpu
    assert planned is not None
    assert 0.9 * planned.tokens < gpu["tokens"] <= planned.tokens
