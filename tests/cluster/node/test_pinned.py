"""Huge pages, locked memory and limits of the Plan, as a real node's kernel has them for the engines."""

import json

from tests.cluster.node.engines import CAPACITY_BYTES, Engines


def test_tier_is_in_memory_as_asked_for(engines: Engines) -> None:
    for processes in engines.processes():
        hugetlb = sum(process.hugetlb_bytes for process in processes)
        locked = sum(process.locked_bytes for process in processes)
        if engines.has_hugepages:
            assert hugetlb == CAPACITY_BYTES  # hugetlbfs pages are never swapped: nothing is left to lock
            assert not any(process.may_lock for process in processes), "more rights than the default asks for"
        else:
            assert hugetlb == 0
            assert locked >= CAPACITY_BYTES
            (limit,) = {process.memlock_limit_bytes for process in processes}
            assert limit is not None
            assert limit < CAPACITY_BYTES, "the node's limit would do: IPC_LOCK is not shown to be needed"
            assert all(process.may_lock for process in processes)


def test_limits_are_what_the_report_says(engines: Engines) -> None:
    budget = engines.plan.budget
    everyone = [process for processes in engines.processes() for process in processes]
    assert {each.memory_limit_bytes for each in everyone} == {sum(line.bytes for line in budget.memory)}
    assert {each.shm_bytes for each in everyone} == {budget.shm_bytes}


def test_doctor_has_looked_before_each_engine_started(engines: Engines) -> None:
    for pod in engines.pods():
        _, doctor = pod["status"]["initContainerStatuses"]
        ended = doctor["state"]["terminated"]
        assert (ended["exitCode"], json.loads(ended["message"])["outcome"]) == (0, "Pass")


def test_status_says_what_is_there(engines: Engines) -> None:
    conditions = {
        condition["type"]: condition["status"] for condition in engines.resource["status"]["conditions"]
    }
    assert conditions == dict.fromkeys(conditions, "True")
    assert engines.resource["status"]["tiers"]["cpu"]["bytes"] == CAPACITY_BYTES


def test_the_running_engines_correct_what_the_status_says_of_their_device(engines: Engines) -> None:
    """The CPU tier's size is told with the first request, which nobody has sent yet."""
    jsonpath = "--for=jsonpath={.status.tiers.gpu.source}=Observed"
    engines.site.kubectl("wait", f"kvct/{engines.name}", jsonpath, "--timeout=60s")
    gpu = engines.site.kubectl.json("get", "kvct", engines.name)["status"]["tiers"]["gpu"]
    planned = engines.plan.tiers.gpu
    assert planned is not None
    assert 0.9 * planned.tokens < gpu["tokens"] <= planned.tokens
