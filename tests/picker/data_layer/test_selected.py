"""Pods by their labels, from an API server that knows no InferencePool."""

import asyncio

from tests.picker.data_layer.api_server import PODS, pod, running_api
from tests.picker.data_layer.recorder import Recorder

from kvtier_scorer.picker.pods.cluster import SelectedPods


async def test_pods_are_found_without_a_pool() -> None:
    sink = Recorder()
    async with running_api() as api:
        api.objects[PODS] = [pod("a", "10.0.0.1")]
        source = SelectedPods(api.client(), "ns", {"app": "vllm"}, [8000, 8001], lambda _: 0.01)
        assert not source.synced
        run = asyncio.create_task(source.run(sink))
        await sink.until(lambda: sink.here == {"10.0.0.1:8000": "a", "10.0.0.1:8001": "a"})
        assert source.synced
        await api.send(PODS, "ADDED", pod("b", "10.0.0.2"))
        await sink.until(lambda: len(sink.here) == 4)
        await api.send(PODS, "DELETED", pod("a", "10.0.0.1"))
        await sink.until(lambda: set(sink.here.values()) == {"b"})
        assert {path for _, path, _ in api.asked} == {PODS}
        assert api.asked[0][2]["labelSelector"] == "app=vllm"
        run.cancel()
        await asyncio.wait([run])
