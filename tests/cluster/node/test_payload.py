"""An image with vLLM and nothing of kvtier, on a real node: the engines' pods bring the connector."""

import json
from pathlib import Path

from tests.cluster.harness.images.engines import SMALL_MODEL
from tests.cluster.node.engines import SERVING_PORT, Engines
from tests.picker.harness.client import get, post

from kvtier_connector.payload import INIT_NAME, PAYLOAD_PATH
from kvtier_operator.runtime.metrics import EngineMetrics, parse_metrics

# Some 1,700 tokens each: the device holds two of them, the tier nine.
PROMPTS = [f"{number} " + "lorem ipsum dolor sit amet " * 120 for number in range(5)]


def test_what_left_the_device_comes_back_from_memory(engines: Engines) -> None:
    url = f"http://{next(iter(engines.ips().values()))}:{SERVING_PORT}"
    first, *_ = [completed(url, prompt) for prompt in PROMPTS]
    before = told(url)
    assert completed(url, PROMPTS[0]) == first
    served = told(url).since(before)
    assert served.cached_tokens["cpu"] > 0.9 * served.prompt_tokens


def completed(url: str, prompt: str) -> str:
    """What an engine says to a prompt, always the same."""
    body = {"model": SMALL_MODEL.name, "prompt": prompt, "max_tokens": 8, "temperature": 0}
    answer = post(f"{url}/v1/completions", json.dumps(body).encode())
    assert answer.status == 200, answer.body
    text: str = json.loads(answer.body)["choices"][0]["text"]
    return text


def told(url: str) -> EngineMetrics:
    """What an engine counts."""
    return parse_metrics(get(f"{url}/metrics").body.decode())


def test_the_connector_is_the_pod_s_and_was_copied_without_a_word(engines: Engines) -> None:
    for processes in engines.processes():
        maps = "".join(Path(f"/proc/{process.pid}/maps").read_text() for process in processes)
        compiled = [line for line in maps.splitlines() if "xxhash" in line]
        assert compiled, "no engine has loaded what vLLM's image lacks"
        assert [line for line in compiled if f" {PAYLOAD_PATH}/" not in line] == []
    for pod in engines.pods():
        assert not engines.site.kubectl("logs", pod["metadata"]["name"], "--container", INIT_NAME)
