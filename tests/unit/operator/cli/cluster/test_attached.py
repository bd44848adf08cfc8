"""A resource whose tiers go to pods of others: what is read of them, and what is shown."""

import json
from dataclasses import replace
from typing import Any

import pytest
from tests.cases.seen import ENGINE_TEXT, engine_metrics, pod, resource, view_of

from kvtier_common.kubernetes.answers import Document
from kvtier_connector.payload import ATTACH_VARIABLE
from kvtier_operator.cli.cluster.next_step import next_step
from kvtier_operator.cli.cluster.reader import Reader
from kvtier_operator.cli.cluster.resource import Seen
from kvtier_operator.cli.cluster.screen import overview, status_screen, view_fields
from kvtier_operator.planning.base.names import ATTACHED

TIERS = "/apis/kvtier.dev/v1alpha1/namespaces/llm/kvcachetiers"
PODS = "/api/v1/namespaces/llm/pods"
SCREEN = """\
llm/qwen3-32b  KVTier  2 of 3 pods attached

conditions
  ✓ Accepted  tiers for pods that others own: CPU 100 GiB
  ✗ Attached  LeftAlone: 2 of 3 pods have the tier; pod chat-c is left alone:
              its engine is pipeline-parallel
  ✗ Ready     LeftAlone: Attached: 2 of 3 pods have the tier

pods
  name    state  restarts  age  node
  chat-a  ready         0   3h  node-a
  chat-b  ready         0   3h  node-b
  chat-c  ready         0   3h  node-c

tiers of 2 engines, since each started
  tier      capacity     tokens  filled  hit rate  saved
  gpu              -    128,000   25.0%     40.0%  160 s
  cpu        200 GiB    819,200   50.0%     20.0%   72 s
  disk         2 TiB  8,388,352   10.0%      5.0%   18 s
  computed         -          -       -     35.0%      -

next
  do what Attached says
  $ kubectl --namespace llm describe kvct qwen3-32b
"""


def _resource(*, attached: int = 2, left_alone: int = 1, **condition: tuple[str, str, str]) -> Document:
    states = ["Attached"] * attached + ["LeftAlone"] * left_alone
    pods = [{"name": f"chat-{name}", "state": state} for name, state in zip("abc", states, strict=False)]
    told = {
        "Accepted": ("True", "Accepted", "tiers for pods that others own: CPU 100 GiB"),
        "Attached": ("True", "AllAttached", "2 of 2 pods have the tier"),
        "Ready": ("True", "Ready", "2 of 2 pods have the tier"),
        **condition,
    }
    status = {
        "observedGeneration": 3,
        "attach": {"settings": "{}", "pods": pods},
        "tiers": {"gpu": {"tokens": 64_000}, "cpu": {"bytes": 100 << 30, "tokens": 409_600}},
        "conditions": [
            {"type": type_, "status": status, "reason": reason, "message": message}
            for type_, (status, reason, message) in told.items()
        ],
    }
    document = resource()
    attach = {"podSelector": {"matchLabels": {"role": "prefill", "app": "chat"}}}
    return {**document, "spec": {"backend": "KVTier", "attach": attach, "tiers": {}}, "status": status}


def _pod(name: str, tier: str = "qwen3-32b", port: int = 8200) -> Document:
    document = pod(name)
    document["metadata"] |= {"labels": {"app": "chat"}, "annotations": {ATTACHED: tier} if tier else {}}
    probe = {"httpGet": {"port": port, "scheme": "HTTPS"}}
    engine = {"name": "main", "env": [{"name": ATTACH_VARIABLE}], "readinessProbe": probe}
    document["spec"]["containers"] = [engine]
    return document


def _seen(document: Document) -> Seen:
    names = ("chat-a", "chat-b", "chat-c")
    return Seen(document, tuple(map(_pod, names)), {name: engine_metrics() for name in names})


def test_the_screen_is_about_pods_and_has_no_picker() -> None:
    left_alone = "2 of 3 pods have the tier; pod chat-c is left alone: its engine is pipeline-parallel"
    document = _resource(
        Attached=("False", "LeftAlone", left_alone),
        Ready=("False", "LeftAlone", "Attached: 2 of 3 pods have the tier"),
    )
    view = view_of(_seen(document))
    assert status_screen(view, next_step(view), 80) == SCREEN
    assert overview([view], 100).splitlines()[1].startswith("llm/qwen3-32b    2/3 ")


@pytest.mark.parametrize(
    ("document", "metric", "text"),
    [
        (_resource(left_alone=0), {}, "nothing: it serves"),
        (_resource(attached=0, left_alone=0), {}, "nothing: it serves"),
        (
            _resource(left_alone=0),
            {"disk_degraded": 1.0},
            "read why 3 of 3 engines cannot use their disk",
        ),
        (
            _resource(left_alone=0),
            {"load_time_total": 900.0},
            "measure: loading has taken longer than computing would have, by the engines' own counters",
        ),
    ],
)
def test_no_step_is_about_engines_of_its_own(document: Document, metric: dict[str, float], text: str) -> None:
    seen = _seen(document)
    metrics = {name: engine_metrics(changes=metric) for name in seen.metrics}
    step = next_step(view_of(replace(seen, metrics=metrics)))
    assert (step.text, step.command) == (text, "")


def test_what_their_picker_is_told_is_shown() -> None:
    document = _resource(left_alone=0)
    router = {
        "entries": {"gpuPrefix": 1000, "cpuPrefix": 6400},
        "tokensPerEntry": 64,
        "configMap": "qwen3-32b-picker",
    }
    document["status"]["router"] = router
    view = view_of(_seen(document))
    picker = view_fields(view, next_step(view))["picker"]
    assert picker.items() >= router.items()
    shown = status_screen(view, next_step(view), 140)
    assert "ConfigMap qwen3-32b-picker; prefix entries an engine: gpu 1,000, cpu 6,400 of 64 tokens" in shown


def test_a_pod_without_a_node_has_a_step_of_its_own() -> None:
    waiting = _pod("chat-a")
    message = "0/3 nodes are available: 3 Insufficient memory."
    scheduled = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message}
    waiting["status"] = {"phase": "Pending", "conditions": [scheduled]}
    step = next_step(view_of(Seen(_resource(left_alone=0), (waiting,), {})))
    assert step.text == "make room for chat-a on a node: Attached says what holds it up"


class _Server:
    """Has pods by their labels, and what they say of themselves."""

    def __init__(self, pods: list[Document]) -> None:
        self.pods = pods
        self.asked: list[str] = []

    async def get(self, path: str, query: Any = None, accept: str = "", *, most_bytes: int = 0) -> bytes:  # noqa: ANN401 - of any request
        del accept, most_bytes
        if path == PODS:
            theirs = query["labelSelector"] == "app=chat,role=prefill"
            return json.dumps({"items": self.pods if theirs else [], "metadata": {}}).encode()
        if path.endswith("/metrics"):
            self.asked.append(path)
            return ENGINE_TEXT.encode()
        document = _resource()
        return json.dumps(document if path != TIERS else {"items": [document], "metadata": {}}).encode()


@pytest.mark.parametrize("all_of_them", [True, False])
async def test_pods_are_those_that_were_given_its_tiers(*, all_of_them: bool) -> None:
    server = _Server([_pod("a"), _pod("b", "another"), _pod("c", "")])
    reader = Reader(server)  # type: ignore[arg-type]
    seen = (await reader.resources("llm"))[0] if all_of_them else await reader.resource("llm", "qwen3-32b")
    assert [document["metadata"]["name"] for document in seen.pods] == ["a"]
    assert server.asked == [f"{PODS}/https:a:8200/proxy/metrics"]
    assert [*seen.metrics] == ["a"]
