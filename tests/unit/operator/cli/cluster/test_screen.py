"""What is shown of a resource, at two widths of a terminal."""

import re
from dataclasses import replace

import pytest
from tests.cases.seen import (
    BUILTIN_TEXT,
    conditions,
    crashing,
    picker_metrics,
    pod,
    resource,
    view_of,
    well,
)

from kvtier_common.terminal.say import style_text
from kvtier_operator.cli.cluster.next_step import next_step
from kvtier_operator.cli.cluster.resource import Seen
from kvtier_operator.cli.cluster.screen import status_screen

AT_80 = """\
llm/qwen3-32b  Qwen/Qwen3-32B  KVTier  2 of 2 engines ready

conditions
  ✓ Accepted      Qwen/Qwen3-32B on backend KVTier, 2 engine pods of 2 ranks; t…
  ✓ BudgetFits    an engine pod needs 113.16 GiB of memory: vLLM front end 1 Gi…
  ✓ NodesFit      room for 4 engines, 2 wanted (nodes: 2, matching 2, with room…
  ✓ EnginesReady  2 of 2 engine pods ready
  ✓ RouterReady   1 of 1 picker pods ready
  ✓ Ready         2 of 2 engine pods ready; 1 of 1 picker pods ready

pods
  name                state  restarts  age  node
  qwen3-32b-engine-a  ready         0   3h  node-a
  qwen3-32b-engine-b  ready         0   3h  node-b
  qwen3-32b-picker-c  ready         0   3h  node-c

tiers of 2 engines, since each started
  tier      capacity     tokens  filled  hit rate  saved
  gpu         40 GiB    163,840   25.0%     40.0%  160 s
  cpu        200 GiB    819,200   50.0%     20.0%   72 s
  disk         2 TiB  8,388,352   10.0%      5.0%   18 s
  computed         -          -       -     35.0%      -

picker
  llm-d; prefix entries an engine: gpu 1,280, cpu 6,400, disk 65,534 of 64
  tokens each
  believed the engine it picked to hold 54.0% of a prompt; engines found 65.0%

next
  nothing: it serves
"""
AT_100 = """\
llm/qwen3-32b  Qwen/Qwen3-32B  KVTier  2 of 2 engines ready

conditions
  ✓ Accepted      Qwen/Qwen3-32B on backend KVTier, 2 engine pods of 2 ranks; to look at: spec.tier…
  ✓ BudgetFits    an engine pod needs 113.16 GiB of memory: vLLM front end 1 GiB, engine processes …
  ✓ NodesFit      room for 4 engines, 2 wanted (nodes: 2, matching 2, with room 2); one takes 2 nvi…
  ✓ EnginesReady  2 of 2 engine pods ready
  ✓ RouterReady   1 of 1 picker pods ready
  ✓ Ready         2 of 2 engine pods ready; 1 of 1 picker pods ready

pods
  name                state  restarts  age  node
  qwen3-32b-engine-a  ready         0   3h  node-a
  qwen3-32b-engine-b  ready         0   3h  node-b
  qwen3-32b-picker-c  ready         0   3h  node-c

tiers of 2 engines, since each started
  tier      capacity     tokens  filled  hit rate  saved
  gpu         40 GiB    163,840   25.0%     40.0%  160 s
  cpu        200 GiB    819,200   50.0%     20.0%   72 s
  disk         2 TiB  8,388,352   10.0%      5.0%   18 s
  computed         -          -       -     35.0%      -

picker
  llm-d; prefix entries an engine: gpu 1,280, cpu 6,400, disk 65,534 of 64 tokens each
  believed the engine it picked to hold 54.0% of a prompt; engines found 65.0%

next
  nothing: it serves
"""
TROUBLE_AT_80 = """\
llm/qwen3-32b  Qwen/Qwen3-32B  KVTier  1 of 2 engines ready

conditions
  ✓ Accepted      Qwen/Qwen3-32B on backend KVTier, 2 engine pods of 2 ranks; t…
  ✓ BudgetFits    an engine pod needs 113.16 GiB of memory: vLLM front end 1 Gi…
  ? NodesFit      the operator may not see nodes
  ✗ EnginesReady  ContainerCrashed: 1 of 2 engines is ready; pod
                  qwen3-32b-engine-a on node-a: container engine ended with exit
                  code 1, 3 restarts: CUDA out of memory
  ✓ RouterReady   1 of 1 picker pods ready
  ✗ Ready         ContainerCrashed: EnginesReady: 1 of 2 engines is ready; pod
                  qwen3-32b-engine-a on node-a: container engine ended with exit
                  code 1, 3 restarts: CUDA out of memory

pods
  name                state             restarts  age  node
  qwen3-32b-engine-a  ContainerCrashed         3   3h  node-a
  qwen3-32b-engine-b  ready                    0   3h  node-b

tiers of one engine, as far as its status tells
  tier  capacity     tokens  filled  hit rate  saved
  gpu     20 GiB     81,920       -         -      -
  cpu    100 GiB    409,600       -         -      -
  disk     1 TiB  4,194,176       -         -      -

picker
  llm-d; prefix entries an engine: gpu 1,280, cpu 6,400, disk 65,534 of 64
  tokens each

not read
  what engines and pickers count: you may not get pods/proxy in namespace llm;
  Kubernetes' role edit may

next
  read why qwen3-32b-engine-a ended
  $ kubectl --namespace llm logs qwen3-32b-engine-a --all-containers \\
      --previous --ignore-errors
"""

CRASHED = (
    "1 of 2 engines is ready; pod qwen3-32b-engine-a on node-a: container engine ended with exit code 1, "
    "3 restarts: CUDA out of memory"
)
NO_RIGHT = (
    "what engines and pickers count: you may not get pods/proxy in namespace llm; Kubernetes' role edit may"
)
IN_TROUBLE = Seen(
    resource(
        {
            "readyReplicas": 1,
            "conditions": conditions(
                EnginesReady=(
                    "False",
                    "ContainerCrashed",
                    CRASHED,
                ),
                Ready=("False", "ContainerCrashed", f"EnginesReady: {CRASHED}"),
                NodesFit=("Unknown", "NodesNotSeen", "the operator may not see nodes"),
            ),
        }
    ),
    (pod("qwen3-32b-engine-b"), crashing("qwen3-32b-engine-a")),
    unread=(NO_RIGHT,),
)


def screen(seen: Seen, columns: int, *, colour: bool = False) -> str:
    view = view_of(seen)
    return status_screen(view, next_step(view), columns, colour=colour)


@pytest.mark.parametrize(("columns", "text"), [(80, AT_80), (100, AT_100)])
def test_a_resource_that_serves(columns: int, text: str) -> None:
    assert screen(well(), columns) == text


def test_a_resource_in_trouble() -> None:
    assert screen(IN_TROUBLE, 80) == TROUBLE_AT_80


@pytest.mark.parametrize("columns", [40, 60, 80, 100, 120, 200])
def test_nothing_is_wider_than_the_terminal(columns: int) -> None:
    for seen in (well(), IN_TROUBLE, well({"disk_degraded": 1.0})):
        assert max(map(len, screen(seen, columns).splitlines())) <= columns


def test_colours_are_the_same_text() -> None:
    coloured = style_text(screen(IN_TROUBLE, 80, colour=True), colour=True)
    assert "\x1b[31m✗" in coloured
    assert re.sub(r"\x1b\[[0-9]+m", "", coloured) == screen(IN_TROUBLE, 80)


def test_many_pods_take_a_screen_and_no_more() -> None:
    pods = (*(pod(f"engine-{number:03}") for number in range(100)), crashing("engine-100"))
    shown = screen(replace(well(), pods=pods), 80)
    rows = re.findall(r"^  engine-.*$", shown, re.MULTILINE)
    assert len(rows) == 12
    assert rows[0].startswith("  engine-100")
    assert "  and 89 pods more, 89 of them ready" in shown


def test_our_own_picker_s_view() -> None:
    seen = well()
    shown = screen(
        replace(seen, metrics={**seen.metrics, "qwen3-32b-picker-c": picker_metrics(BUILTIN_TEXT)}), 80
    )
    assert "  knows 2 engines, 1 of them without a recent reading; 42 requests sent\n" in shown
    assert "  believed the engine it picked to hold 60.0% of a prompt; engines found 65.0%\n" in shown
    assert "  its index is full to: cpu 25.0%\n" in shown


def test_where_clients_ask_kvtiers_own_gateway() -> None:
    url = "http://qwen3-32b-gateway.llm.svc/v1"
    seen = well()
    pods = (*seen.pods, pod("qwen3-32b-gateway-d", "gateway"))
    shown = screen(replace(seen, resource=resource({"router": {"url": url}}), pods=pods), 80)
    assert f"\n  clients ask {url}\n" in shown
    assert "  qwen3-32b-gateway-d  ready" in shown
