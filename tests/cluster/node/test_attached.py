"""vLLM pods that others own, on a real node: served as before, and warm from memory after one restart."""

from collections.abc import Iterator
from typing import Final

import pytest
from tests.cluster.harness.images.engines import SMALL_MODEL
from tests.cluster.harness.operator.installed import Site
from tests.cluster.node import others
from tests.cluster.node.test_payload import PROMPTS, completed, told
from tests.cluster.node.told import kubectl_kvtier
from tests.picker.harness.client import get
from tests.shared.waiting import eventually

from kvtier_connector.payload import INIT_NAME
from kvtier_operator.planning.units import MIB

_WORDS: Final = others.arguments(SMALL_MODEL, tokens=2048, cache_bytes=32 * MIB)
_LINE: Final = " ".join(_WORDS)
# Engines start twice, which takes minutes.
pytestmark = pytest.mark.long
# As charts, controllers and people start it.
SHAPES: Final[dict[str, tuple[str, list[str]]]] = {
    "bash -c eval": (
        "Deployment",
        ["bash", "-c", f'eval "exec vllm serve {_LINE} ${{EXTRA_ARGS:-}} $@"', "--"],
    ),
    "sh -c": ("Deployment", ["sh", "-c", f"exec vllm serve {_LINE}"]),
    "python -m": (
        "StatefulSet",
        ["python3", "-m", "vllm.entrypoints.openai.api_server", "--model", *_WORDS],
    ),
}


@pytest.fixture
def namespace(site: Site) -> Iterator[None]:
    others.make_namespace(site)
    yield
    site.kubectl("delete", "namespace", others.NAMESPACE, "--timeout=300s")


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.usefixtures("namespace")
def test_a_workload_of_others_keeps_its_spec_and_is_warm(site: Site, shape: str) -> None:
    kind, command = SHAPES[shape]
    others.apply(site, others.workload(kind, command))
    before = others.ready_pod(site)
    answers = [completed(others.url_of(before), prompt) for prompt in PROMPTS]

    others.apply(site, others.tier("128Mi"))
    eventually(lambda: others.pod_state(site) == "StartedBefore", "a word on the pod that was there")
    workload = site.kubectl.json("get", kind, others.NAME, "--namespace", others.NAMESPACE)
    assert workload["metadata"]["generation"] == 1
    others.restart(site, kind)

    pod = others.ready_pod(site, but=before["metadata"]["uid"])
    assert pod["spec"]["initContainers"][0]["name"] == INIT_NAME
    [engine] = pod["spec"]["containers"]
    assert (engine["command"], engine.get("args")) == (command, None)
    url = others.url_of(pod)
    assert [completed(url, prompt) for prompt in PROMPTS] == answers
    assert 'kvtier_attach_info{reason="Attached"} 1.0' in get(f"{url}/metrics").body.decode()
    counted = told(url)
    assert completed(url, PROMPTS[0]) == answers[0]
    served = told(url).since(counted)
    assert served.cached_tokens["cpu"] > 0.9 * served.prompt_tokens

    done = kubectl_kvtier(site, site.kubectl.kubeconfig, "clear", others.NAME, "-n", others.NAMESPACE)
    assert (done.returncode, done.stderr) == (0, ""), done
    counted = told(url)
    assert completed(url, PROMPTS[0]) == answers[0]
    assert sum(told(url).since(counted).cached_tokens.values()) == 0
    eventually(lambda: others.pod_state(site) == "Attached", "a word on the pod that was made anew")
    site.kubectl(
        *("wait", f"kvct/{others.NAME}", "--namespace", others.NAMESPACE),
        *("--for=condition=Ready", "--timeout=120s"),
    )
