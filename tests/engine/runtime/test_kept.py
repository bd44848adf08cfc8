"""`kvtier run` of a resource that keeps what matters: with real vLLM, through the gateway, over a restart."""

import json
import shlex
import subprocess
import sys
from collections.abc import Sequence
from contextlib import closing
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families
from tests.engine.runtime.conftest import TEXT, StartRun
from tests.engine.runtime.endings import TIMEOUT_S
from tests.engine.runtime.running import kvtier
from tests.shared.newer_vllm import engines_environment

from kvtier_common.metrics import disk_tier, hints, prefixes
from kvtier_operator.runtime.measure import OpenAIClient
from kvtier_operator.runtime.process import free_ports

pytestmark = [pytest.mark.engine, pytest.mark.filterwarnings("ignore")]

PREFIX = TEXT * 4
PROMPT = "[Prompt 1] " + TEXT * 3
OTHER = "[Prompt 2] " + TEXT * 3


def resource(path: Path, replicas: int) -> Path:
    """Write one whose disk outlives its engines."""
    spec = {
        "model": {"name": "test/tiny"},
        "replicas": replicas,
        "engine": {
            "device": "cpu",
            "maxModelLen": 1024,
            "blockSize": 32,
            "kvCacheMemory": "2Mi",
            # In bfloat16, where a CPU lacks AVX-512, vLLM's kernel dies of a first step of one token, with or
            # without a connector; an engine that finds its whole prefix in a tier has such a step.
            "extraArgs": ["--enforce-eager", "--dtype", "float32"],
        },
        "tiers": {
            "cpu": {"capacity": "16Mi", "retained": {"most": "40%"}},
            "disk": {"capacity": "32Mi", "volume": {"persistentVolumeClaim": {"claimName": "disk"}}},
        },
        "prefixes": [{"name": "system", "text": PREFIX}],
        "tenants": [{"name": "search", "guaranteed": "20%"}],
    }
    kind = {"apiVersion": "kvtier.dev/v1alpha1", "kind": "KVCacheTier", "metadata": {"name": "tiny"}}
    path.write_text(yaml.safe_dump(kind | {"spec": spec}))
    return path


class Engine:
    """One of a run, by itself."""

    def __init__(self, url: str, control: str) -> None:
        self._client = OpenAIClient(url)
        self._port = url.rpartition(":")[2]
        self._control = control

    def metric(self, name: str, **labels: str) -> float:
        """The sum of a metric's series with these labels."""
        families = text_string_to_metric_families(self._client.text("/metrics"))
        samples = [sample for family in families for sample in family.samples if sample.name == name]
        return sum(sample.value for sample in samples if labels.items() <= sample.labels.items())

    def cached_tokens(self, prompt: str) -> int:
        """Tokens of a prompt that were found in a cache."""
        asked = {"model": "test/tiny", "prompt": prompt, "max_tokens": 1}
        usage = json.loads(self._client.post("/v1/completions", json.dumps(asked).encode()))["usage"]
        return int((usage["prompt_tokens_details"] or {}).get("cached_tokens", 0))

    def told(self, *order: str, stdin: str = "") -> dict[str, Any]:
        """What comes of a verb, as in an engine's container."""
        command = [sys.executable, "-m", "kvtier_connector.control"]
        done = subprocess.run(  # noqa: S603 - our own
            [*command, "--path", self._control, "--port", self._port, *order],
            input=stdin,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        answer: dict[str, Any] = json.loads(done.stdout)
        return answer

    def holds(self) -> dict[str, dict[str, Any]]:
        """What each of its tiers holds."""
        return {tier["tier"]: tier for tier in self.told("top")["tiers"]}


def engines_of(output: Sequence[str], dry: str) -> list[Engine]:
    """The engines of a run, by what it says and what a dry run says of it."""
    urls = {line.split()[0]: line.split()[-1] for line in output if " is ready at " in line}
    words = [shlex.split(line) for line in dry.splitlines()]
    controls = [
        word.partition("=")[2] for line in words for word in line if word.startswith("KVTIER_CONTROL=")
    ]
    return [Engine(urls[name], control) for name, control in zip(sorted(urls), controls, strict=True)]


def ask(url: str, prompt: str, headers: dict[str, str]) -> None:
    connection = HTTPConnection(url.removeprefix("http://"), timeout=TIMEOUT_S)
    with closing(connection):
        body = json.dumps({"model": "test/tiny", "prompt": prompt, "max_tokens": 1})
        connection.request("POST", "/v1/completions", body, {"Content-Type": "application/json", **headers})
        answer = connection.getresponse()
        assert answer.status == 200, answer.read()
        answer.read()


@pytest.mark.parametrize(
    ("older", "restarted"),
    [
        pytest.param(False, False, id="newer"),
        pytest.param(False, True, id="newer-restarted", marks=pytest.mark.long),
        pytest.param(True, True, id="older-restarted", marks=pytest.mark.long),
    ],
)
def test_what_is_kept_is_told_through_the_gateway_and_is_there_after_a_restart(  # noqa: PLR0913, PLR0917 - fixtures
    older: bool,
    restarted: bool,
    start_run: StartRun,
    tiny_model: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if not older:
        monkeypatch.setenv("PYTHONPATH", engines_environment()["PYTHONPATH"])
    url = f"http://127.0.0.1:{(number := free_ports(1, '127.0.0.1')[0])}"
    two, one = (resource(tmp_path / f"{count}.yaml", count) for count in (2, 1))
    logs = ("--log-dir", str(tmp_path / "logs"))
    dry = kvtier("run", "-f", str(two), "--model", str(tiny_model), *logs, "--dry-run").stdout
    with start_run(two, "--port", str(number)) as run:
        run.wait_ready()
        first, second = engines = engines_of(run.output, dry)
        for engine in engines:
            assert engine.metric(prefixes.COMPUTED, prefix="system") == 1, "it was ready before its prefix"
        for _ in range(2):  # figures come with a step
            ask(url, PROMPT, {"X-KVTier-Retain": "600", "X-KVTier-Share": "search"})
        by_share = [engine.holds()["cpu"]["by_share"]["search"] for engine in engines]
        asked = [
            engine.metric(f"{hints.TENANT_ASKED_TOKENS}_total", tenant="search") > 0 for engine in engines
        ]
        assert sorted(map(bool, by_share)) == [False, True], "a prompt and its tenant did not stay together"
        assert asked == list(map(bool, by_share))
        there = engines[asked.index(True)]

        line = json.dumps({"prompt": OTHER})
        said = there.told("keep", "--for", "600", stdin=line)
        assert (said["computed"], said["cached_tokens"]) == (1, 0)
        fetched = there.told("prefetch", stdin=PROMPT)
        assert fetched["in_memory_tokens"] == fetched["tokens"] // 32 * 32 > 0

        assert second.cached_tokens(PREFIX) > 0
        assert second.told("clear")["cleared"]["cpu"] > 0
        assert second.cached_tokens(PREFIX) == 0
        tokens = int(first.metric(prefixes.TOKENS, prefix="system"))
        while first.holds()["disk"]["used"] < tokens // 32:
            first.cached_tokens(PREFIX)  # a busy disk is given less, and the rest with the next use
    if not restarted:
        return
    with start_run(one, "--port", str(number)) as run:
        run.wait_ready()
        [again] = engines_of(run.output, dry.splitlines()[0])
        assert again.metric(prefixes.CACHED_TOKENS, prefix="system") >= (tokens - 1) // 32 * 32 > 0
        assert again.metric(f"{disk_tier.WARMED_CHUNKS}_total") > 0
