"""An engine of others: vLLM's image has nothing of kvtier, and its pod a folder and a variable of ours."""

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from prometheus_client.parser import text_string_to_metric_families
from tests.cluster.harness.images.vllm_packages import vllm_packages
from tests.engine.runtime.endings import TIMEOUT_S
from tests.shared.waiting import eventually

from kvtier_connector.complete import NEEDED
from kvtier_connector.payload import ATTACH_VARIABLE
from kvtier_operator.errors import RuntimeFailedError
from kvtier_operator.runtime.measure import OpenAIClient
from kvtier_operator.runtime.process import free_ports
from lay_out_payload import LACKING_FOLDER, lay_out_own

_OF_VLLM: Final = {"numba", "numpy"}
_START_TIMEOUT_S: Final = 900.0
_OPTIONS: Final = (
    *("--dtype", "float32", "--enforce-eager", "--max-model-len", "1024", "--max-num-seqs", "8"),
    *("--block-size", "32", "--num-gpu-blocks-override", "48", "--served-model-name", "theirs"),
)
SHAPES: Final[Mapping[str, Sequence[str]]] = {
    "serve": ("vllm", "serve", "{model}"),
    # as KServe's LLMInferenceService has it: the shell reads the line twice
    "eval": ("/bin/bash", "-c", 'eval "exec vllm serve {model} ${{THEIR_ARGS}} $@"', "--"),
    "module": ("python", "-m", "vllm.entrypoints.openai.api_server", "--model", "{model}"),
}
"""How people start vLLM."""


class TheirEngine:
    """One that serves."""

    def __init__(self, client: OpenAIClient, log: Path) -> None:
        self._client = client
        self._log = log

    def answer(self, prompt: Sequence[int], tokens: int = 8) -> list[int]:
        """The tokens that follow a prompt at temperature 0."""
        asked = {"model": "theirs", "prompt": list(prompt), "max_tokens": tokens, "temperature": 0}
        asked |= {"ignore_eos": True, "return_token_ids": True}
        answer = json.loads(self._client.post("/v1/completions", json.dumps(asked).encode()))
        return list(answer["choices"][0]["token_ids"])

    def post(self, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """What it answers to a request."""
        answer: dict[str, Any] = json.loads(self._client.post(path, json.dumps(body).encode()))
        return answer

    def metrics(self, name: str) -> dict[tuple[str, ...], float]:
        """The samples of a metric, by the values of its labels other than vLLM's own."""
        families = text_string_to_metric_families(self._client.text("/metrics"))
        samples = [sample for family in families for sample in family.samples if sample.name == name]
        own = {"engine", "model_name"}
        return {
            tuple(value for label, value in sample.labels.items() if label not in own): sample.value
            for sample in samples
        }

    def metric(self, name: str) -> float:
        """The sum of a metric's samples."""
        return sum(self.metrics(name).values())

    @property
    def log(self) -> str:
        """What it has said so far."""
        return self._log.read_text()


@contextmanager
def their_engine(  # noqa: PLR0913 - all that owners may set
    shape: str,
    model: Path,
    folder: Path,
    settings: Mapping[str, Any],
    *,
    older: bool = False,
    options: Sequence[str] = (),
    variables: Mapping[str, str] = MappingProxyType({}),
) -> Iterator[TheirEngine]:
    """Start vLLM as its owner does, and end it: the pod's environment is all that is ours."""
    packages = vllm_packages(lambda line: print(line, file=sys.stderr), older=older)  # noqa: T201 - whoever waits
    (port,) = free_ports(1, "127.0.0.1")
    argv = [part.format(model=model) for part in SHAPES[shape]]
    argv += [*_OPTIONS, "--host", "127.0.0.1", "--port", str(port), *options]
    path = os.pathsep.join([str(payload(folder / "payload")), str(packages)])
    environment = {
        "PATH": f"{_programs(folder / 'bin')}{os.pathsep}{os.defpath}",
        "HOME": str(folder),
        "PYTHONPATH": path,
        ATTACH_VARIABLE: json.dumps(settings),
        "THEIR_ARGS": "--seed 0",
        "VLLM_CPU_KVCACHE_SPACE": "1",
        "VLLM_CPU_OMP_THREADS_BIND": "nobind",
        "OMP_NUM_THREADS": "1",
        "OMP_WAIT_POLICY": "passive",
        "HF_HUB_OFFLINE": "1",
        **variables,
    }
    log = folder / "engine.log"
    with log.open("wb") as output:
        process = subprocess.Popen(  # noqa: S603 - our own
            argv,
            env=environment,
            cwd=folder,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        key = variables.get("VLLM_API_KEY")
        with OpenAIClient(f"http://127.0.0.1:{port}", api_key=key) as client:
            eventually(lambda: _is_ready(process, client, log), "engine that serves", _START_TIMEOUT_S)
            yield TheirEngine(client, log)
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(TIMEOUT_S)
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()


def payload(folder: Path) -> Path:
    """What the init container copies, but of what vLLM's images lack what is installed here: no wheels."""
    lay_out_own(folder)
    for package in set(NEEDED) - _OF_VLLM:
        spec = find_spec(package)
        assert spec is not None
        assert spec.origin is not None
        shutil.copytree(Path(spec.origin).parent, folder / LACKING_FOLDER / package)
    return folder


def _programs(folder: Path) -> Path:
    """The commands of vLLM's image, with a Python that has no packages of its own."""
    folder.mkdir()
    python = Path(sys.base_prefix) / "bin" / f"python3.{sys.version_info.minor}"
    lines = {
        "python": f'exec {python} -s "$@"',
        "vllm": f'exec {python} -s -m vllm.entrypoints.cli.main "$@"',
    }
    for name, line in lines.items():
        program = folder / name
        program.write_text(f"#!/bin/sh\n{line}\n")
        program.chmod(0o755)
    return folder


def _is_ready(process: "subprocess.Popen[bytes]", client: OpenAIClient, log: Path) -> bool:
    assert process.poll() is None, f"it ended before it was ready:\n{log.read_text()}"
    try:
        client.text("/health")
    except RuntimeFailedError:
        return False
    return True
