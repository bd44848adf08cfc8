"""`kvtier run` with a real vLLM: one URL, the tier in use, and nothing left however it ends."""

import json
import re
import signal
import socket
from collections.abc import Sequence
from contextlib import closing
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families
from tests.cases.monitoring import read_series
from tests.cases.promql import exposed_series, missing_series
from tests.engine.runtime.conftest import TEXT, StartRun, WriteResource
from tests.engine.runtime.endings import TIMEOUT_S
from tests.engine.runtime.running import kvtier

from kvtier_common.tier import Tier
from kvtier_operator.runtime.measure import OpenAIClient
from kvtier_operator.runtime.metrics import parse_metrics
from kvtier_operator.runtime.process import free_ports

pytestmark = pytest.mark.engine
PROCESSES_OF_AN_ENGINE = 3
PROCESSES_OF_A_GATEWAY = 4  # the picker, Envoy and their guards
NO_PROMPTS = 2  # picked for as well: the list of models, the unknown model
# What every engine exposes; the counters of loads and stores come with the first of them.
ENGINE_SERIES = {
    name: labels
    for name, labels in read_series().items()
    if name.startswith("vllm:") and "kv_offload" not in name
}
PICKER_SERIES = {
    name: labels
    for name, labels in read_series(router={"flavor": "builtin"}).items()
    if not name.startswith("vllm:")
}


def port() -> int:
    return free_ports(1, "127.0.0.1")[0]


def test_two_replicas_behind_one_url_until_ctrl_c(
    resource: WriteResource, start_run: StartRun, tmp_path: Path
) -> None:
    url = f"http://127.0.0.1:{(number := port())}"
    context = tmp_path / "context.txt"
    context.write_text(TEXT * 6)
    with start_run(resource(replicas=2), "--port", str(number)) as run:
        run.wait_ready()
        engines = [line.split()[-1] for line in run.output if " is ready at " in line]
        assert len(engines) == 2
        asked = kvtier(
            "bench", "query-twice", "--url", url, "--context", str(context), "--repeat", "3", "-o", "json"
        )
        assert asked.returncode == 0, asked.stderr
        figures = json.loads(asked.stdout)["query_twice"]
        assert figures["model"] == "test/tiny"
        assert figures["prompt_tokens"] > 100
        assert len(figures["warm"]["samples_s"]) == 3
        assert sorted(prompts_of(engines)) == [0, 4], "one prompt did not stay on one engine"
        both_get_prompts(url, engines)
        for engine in engines:
            with OpenAIClient(engine) as client:
                text = client.text("/metrics")
            assert missing_series(ENGINE_SERIES, exposed_series(text)) == [], (
                "alerts or dashboard read what vLLM has not"
            )
            assert parse_metrics(text).held_tokens[Tier.CPU] > 0, "the tier holds nothing"
        wrong_requests(url)
        [picker] = [line.split()[3].removesuffix("/metrics;") for line in run.output if "picker: " in line]
        with OpenAIClient(picker) as client:
            assert missing_series(PICKER_SERIES, exposed_series(client.text("/metrics"))) == []
        counted = picks(picker)
        assert counted.keys() == {engine.removeprefix("http://") for engine in engines}
        assert sum(counted.values()) == sum(prompts_of(engines)) + NO_PROMPTS
        processes, shm = run.everything()
        assert len(processes) >= 2 * PROCESSES_OF_AN_ENGINE + PROCESSES_OF_A_GATEWAY
        run.process.send_signal(signal.SIGINT)
        status, output = run.finish()
    assert (status, "Traceback" in output) == (0, False), output
    assert processes.alive_after(0) == {}
    assert shm
    assert [path for path in shm if path.exists()] == []


def prompts_of(engines: Sequence[str]) -> list[int]:
    """How many prompts each engine has answered."""
    answered = []
    for engine in engines:
        with OpenAIClient(engine) as client:
            answered.append(parse_metrics(client.text("/metrics")).ttft_count)
    return answered


def both_get_prompts(url: str, engines: Sequence[str]) -> None:
    """Prompts that no engine knows go to either by chance; so many never to one alone."""
    for number in range(40):
        asked = {"model": "test/tiny", "prompt": f"{number} {number} " + TEXT * 3, "max_tokens": 1}
        assert post(url, json.dumps(asked).encode())[0] == 200
        if all(prompts_of(engines)):
            return
    raise AssertionError("one engine got no prompt of 40")


def wrong_requests(url: str) -> None:
    """An unknown model is vLLM's to refuse, what is no request at all the picker's."""
    status, answer = post(url, b'{"model": "unknown", "prompt": "a", "max_tokens": 1}')
    assert (status, answer["error"]["type"]) == (404, "NotFoundError")
    assert answer["error"]["message"].startswith("The model `unknown` does not exist.")
    status, answer = post(url, b"{not json")
    assert (status, answer["error"]["message"].partition(":")[0]) == (400, "the body is not JSON")


def post(url: str, body: bytes) -> tuple[int, dict[str, Any]]:
    """Status and answer of a completion."""
    connection = HTTPConnection(url.removeprefix("http://"), timeout=TIMEOUT_S)
    with closing(connection):
        connection.request("POST", "/v1/completions", body, {"Content-Type": "application/json"})
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read())


def picks(picker: str) -> dict[str, int]:
    """Requests that the picker sent to each endpoint."""
    with OpenAIClient(picker) as client:
        families = text_string_to_metric_families(client.text("/metrics"))
    samples = [sample for family in families for sample in family.samples]
    counted = [sample for sample in samples if sample.name == "kvtier_picker_picks_total"]
    return {sample.labels["endpoint"]: int(sample.value) for sample in counted}


@pytest.mark.long  # test_guard.py has the same with a program that starts at once
def test_nothing_outlives_a_run_that_was_killed(resource: WriteResource, start_run: StartRun) -> None:
    with start_run(resource(), "--port", str(port())) as run:
        run.wait_ready()
        processes, shm = run.everything()
        assert len(processes) >= PROCESSES_OF_AN_ENGINE
        assert shm
        run.process.kill()
        assert processes.alive_after(TIMEOUT_S) == {}
    assert [path for path in shm if path.exists()] == []


def test_a_vllm_that_dies_at_start_is_explained_in_a_few_lines(
    resource: WriteResource, start_run: StartRun
) -> None:
    unknown = ("--attention-config", '{"no_such_field": 1}')  # what is within JSON no check looks at
    with start_run(resource(extra_args=unknown), "--port", str(port())) as run:
        status, output = run.finish()
    assert status == 3
    assert "engine-0 ended with exit status 2 while it was starting; its log says:" in output
    assert "error: argument --attention-config" in output
    assert "Traceback" not in output
    assert len(output.splitlines()) < 12


def test_a_port_in_use_is_one_line_and_nothing_starts(resource: WriteResource, start_run: StartRun) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        number = taken.getsockname()[1]
        with start_run(resource(), "--port", str(number)) as run:
            status, output = run.finish()
    assert status == 3
    assert output.splitlines()[-1] == (
        f"kvtier: port {number} is in use on 127.0.0.1: stop what listens there or choose another with --port"
    )
    assert "Traceback" not in output


def test_a_backend_that_cannot_run_here_is_refused(resource: WriteResource, tiny_model: Path) -> None:
    refused = kvtier("run", "-f", str(resource(backend="LMCache")), "--model", str(tiny_model))
    assert refused.returncode == 3
    assert "spec.backend: LMCache cannot run on device cpu" in refused.stderr
    assert "Traceback" not in refused.stderr


def without_control_path(text: str) -> str:
    """Return arguments without the folder of the control socket, which each run has to itself."""
    return re.sub(r'"control_path":"[^"]*"', '"control_path":""', text)


def test_a_dry_run_prints_the_plans_own_arguments(resource: WriteResource, tiny_model: Path) -> None:
    path = str(resource(replicas=2))
    config = str(tiny_model / "config.json")
    planned = kvtier("plan", "-f", path, "--local", "--model-config", config, "-o", "json")
    printed = kvtier("run", "-f", path, "--model", str(tiny_model), "--dry-run")
    assert printed.returncode == 0, printed.stderr
    lines = printed.stdout.splitlines()
    assert len(lines) == 4
    assert "-m kvtier_scorer.picker --config-file" in lines[2]
    assert "/envoy --config-path" in lines[3]
    engine = without_control_path(lines[0])
    for argument in json.loads(planned.stdout)["engine"]["args"]:
        if argument != "8000":
            assert without_control_path(argument) in engine
