from dataclasses import replace

import pytest
from tests.cases.seen import conditions, crashing, pod, resource, view_of, well

from kvtier_operator.cli.cluster.next_step import NextStep, next_step
from kvtier_operator.cli.cluster.resource import Seen


def step(seen: Seen) -> NextStep:
    return next_step(view_of(seen))


def failing(type_: str, reason: str = "Because") -> Seen:
    return Seen(resource({"conditions": conditions(**{type_: ("False", reason, "it is not")})}))


def test_nothing_where_all_is_well() -> None:
    assert step(well()) == NextStep("nothing: it serves")


def test_an_operator_that_has_not_looked() -> None:
    assert "see whether the operator runs" in step(Seen(resource({"observedGeneration": 2}))).text
    assert "see whether the operator runs" in step(Seen(resource({"conditions": []}))).text


def test_a_spec_that_is_refused_before_all_else() -> None:
    found = step(failing("Accepted"))
    assert found.text.startswith("change the spec as Accepted says")
    assert found.command == "kvtier plan qwen3-32b --namespace llm"


@pytest.mark.parametrize(
    ("reason", "text", "command"),
    [
        ("ImagePullBackOff", "let the node pull its image", "describe pod a"),
        ("CreateContainerError", "see why a does not start", "describe pod a"),
    ],
)
def test_a_pod_that_does_not_start(reason: str, text: str, command: str) -> None:
    waiting = {"name": "engine", "state": {"waiting": {"reason": reason}}}
    trouble = pod("a", conditions=[{"type": "Ready", "status": "False"}], containerStatuses=[waiting])
    found = step(replace(failing("EnginesReady"), pods=(trouble,)))
    assert found.text.startswith(text)
    assert found.command == f"kubectl --namespace llm {command}"


def test_an_engine_that_ended() -> None:
    assert step(replace(failing("EnginesReady"), pods=(crashing("a"),))) == NextStep(
        "read why a ended", "kubectl --namespace llm logs a --all-containers --previous --ignore-errors"
    )


def test_engines_that_start() -> None:
    starting = pod("a", conditions=[{"type": "Ready", "status": "False"}])
    assert step(replace(failing("EnginesReady"), pods=(starting,))).text == "wait until it is ready"


def test_another_condition() -> None:
    assert step(failing("RouterReady")) == NextStep(
        "do what RouterReady says", "kubectl --namespace llm describe kvct qwen3-32b"
    )


def test_no_engines_wanted() -> None:
    assert "spec.replicas is 0" in step(Seen(resource(replicas=0))).text


def test_nobody_answers() -> None:
    assert step(Seen(resource(), (pod("a"),))).text.startswith("let the engines' metrics be read")


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"disk_degraded": 1.0}, "read why 2 of 2 engines cannot use their disk"),
        ({"disk_pays": 0.0}, "give a faster disk, or take spec.tiers.disk away: 2 of 2 engines"),
        ({"prefix_cache_queries_total": 0.0}, "send requests"),
        ({"kv_offload_load_time_total": 100.0}, "measure: loading has taken longer"),
        ({"cached_by_source_total": 0.0}, "send prompts that begin alike"),
        (
            {"cpu_used_bytes": 107374182400.0, "cpu_evicted_chunks_total": 9.0},
            "think of a larger spec.tiers.cpu.capacity",
        ),
    ],
)
def test_what_the_engines_counters_say(changes: dict[str, float], text: str) -> None:
    assert step(well(changes)).text.startswith(text)
