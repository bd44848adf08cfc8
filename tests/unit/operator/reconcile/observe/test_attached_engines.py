"""Engines of pods that others own: what they say, when they are asked again, what outlives the operator."""

import asyncio
import math
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from tests.cluster.harness.control_plane.certificates import Authority
from tests.cluster.harness.stand_ins.http_server import engine_that_says

from kvtier_common.backoff import Backoff
from kvtier_common.metrics.text import read_families
from kvtier_common.tier import Tier
from kvtier_connector.attach.decisions import Reason
from kvtier_operator.planning.attach.engine_reasons import KNOWN, advice
from kvtier_operator.reconcile.cache.resources import Key
from kvtier_operator.reconcile.facts.selected_pods import SelectedPod
from kvtier_operator.reconcile.observe.attached_engines import AttachedEngineObserver, read_report
from kvtier_operator.reconcile.settings import EngineTimings

KEY = Key("team", "chat")
INFO = 'kvtier_attach_info{{reason="{}"}} 1.0\n'
SIZES = """\
vllm:cache_config_info{block_size="16",engine="0",kv_cache_size_tokens="1600",num_gpu_blocks="101"} 1.0
vllm:kvtier_cpu_capacity_tokens{engine="0"} 4096.0
vllm:kvtier_cpu_capacity_bytes{engine="0"} 1048576.0
"""
RETRY_S = 5.0
TIMINGS = EngineTimings(retry=Backoff(first_s=RETRY_S, longest_s=RETRY_S))


class Looks:
    """An observer whose rounds can be waited for."""

    def __init__(self) -> None:
        self.round_ended = asyncio.Event()
        self.observer = AttachedEngineObserver(lambda *_: self.round_ended.set(), TIMINGS)

    async def finished(self) -> None:
        await self.round_ended.wait()
        self.round_ended.clear()


@asynccontextmanager
async def _looks() -> AsyncIterator[Looks]:
    looks = Looks()
    async with looks.observer.open():
        yield looks


def _pod(port: int, start: str = "containerd://a", scheme: str = "http") -> SelectedPod:
    address = f"{scheme}://127.0.0.1:{port}" if port else ""
    return SelectedPod("chat-0", attached_to="chat", engine_start=start, address=address)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", ""),
        (INFO.format("Attached"), "Attached"),
        (INFO.format("Attached") + INFO.format("Failed"), "Failed"),
        (INFO.format("Failed").replace("1.0", "0.0") + INFO.format("Attached"), "Attached"),
        (INFO.format("OfANewerConnector"), "OfANewerConnector"),
        (INFO.format("do this: rm -rf"), ""),
    ],
)
def test_the_reason_is_read_from_an_engine_s_metrics(text: str, reason: str) -> None:
    assert read_report(read_families(text.encode(), (b"kvtier_attach_info",))).reason == reason


def test_every_reason_of_the_connector_has_its_advice() -> None:
    assert {reason.value for reason in Reason} - {Reason.ATTACHED.value} == KNOWN
    assert advice("OfANewerConnector") == advice(Reason.FAILED.value)


async def test_an_engine_that_has_said_all_is_not_asked_again() -> None:
    with engine_that_says(INFO.format("Attached") + SIZES) as port:
        async with _looks() as looks:
            assert looks.observer.look(KEY, [_pod(port)]).by_pod == {}
            await looks.finished()
            seen = looks.observer.look(KEY, [_pod(port)])
            report = seen.by_pod["chat-0"]
            assert (report.reason, report.sized, report.final) == ("Attached", True, True)
            assert report.tokens.by_tier == {Tier.GPU: 1600, Tier.CPU: 4096}
            assert report.capacity_bytes == {Tier.CPU: 1 << 20}
            assert seen.again_s == math.inf
            assert looks.observer.look(KEY, [_pod(0)]).by_pod == {"chat-0": report}, "not ready for a while"


async def test_an_engine_is_asked_until_it_answers_and_anew_when_it_starts_anew() -> None:
    async with _looks() as looks:
        with engine_that_says(INFO.format("HasConnector")) as port:
            pass  # nobody is there any more
        looks.observer.look(KEY, [_pod(port)])
        await looks.finished()
        seen = looks.observer.look(KEY, [_pod(port)])
        assert (seen.by_pod, 0 < seen.again_s <= RETRY_S) == ({}, True)
        with engine_that_says(INFO.format("HasConnector")) as again:
            looks.observer.look(KEY, [_pod(again, "containerd://b")])
            await looks.finished()
            seen = looks.observer.look(KEY, [_pod(again, "containerd://b")])
            assert (seen.by_pod["chat-0"].left_alone, seen.again_s) == (True, math.inf)
        assert looks.observer.look(KEY, [_pod(0, "containerd://c")]).by_pod == {}


async def test_what_an_earlier_operator_heard_holds_until_the_engine_is_asked() -> None:
    told = [
        {"name": "chat-0", "state": "LeftAlone", "reason": "HasConnector"},
        {"name": "chat-1", "state": "LeftAlone", "reason": "Queued"},
    ]
    other = SelectedPod("chat-1", attached_to="chat")
    async with _looks() as looks:
        assert looks.observer.look(KEY, [_pod(0), other], told).by_pod["chat-0"].left_alone
        assert "chat-1" not in looks.observer.look(KEY, [_pod(0), other], told).by_pod
        looks.observer.forget(KEY)
        with engine_that_says(INFO.format("Attached")) as port:
            looks.observer.look(KEY, [_pod(port)], told)
            await looks.finished()
            assert not looks.observer.look(KEY, [_pod(port)]).by_pod["chat-0"].left_alone


async def test_an_engine_with_a_certificate_that_nobody_knows_is_heard(tmp_path: Path) -> None:
    pair = Authority(tmp_path).sign("engine", hosts=["chat.llm.svc"])
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(pair.certificate, pair.key)
    with engine_that_says(INFO.format("HasConnector"), tls=tls) as port:
        async with _looks() as looks:
            looks.observer.look(KEY, [_pod(port, scheme="https")])
            await looks.finished()
            assert looks.observer.look(KEY, [_pod(port)]).by_pod["chat-0"].left_alone
