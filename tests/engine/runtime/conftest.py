"""A tiny model for `kvtier run`, with a tokenizer and a chat template, made once a session."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Protocol

import pytest
import yaml
from tests.engine.runtime.running import KvtierRun

from kvtier_operator.runtime.demo.prompts import ModelShape, random_model

TINY = ModelShape(
    layers=2,
    hidden_size=64,
    intermediate_size=128,
    heads=2,
    kv_heads=2,
    head_dim=32,
    vocab_size=300,
    max_position_tokens=2048,
)
TEXT = "The prefix cache keeps what was computed once; the next prompt that begins alike loads it.\n"

# Without them in its vocabulary, numbered prompts would be one and the same.
DIGITS = "[Prompt 0] [Prompt 1] [Prompt 2]"


class WriteResource(Protocol):
    """Writes a KVCacheTier for the tiny model and gives its path."""

    def __call__(
        self, *, replicas: int = 1, backend: str = "KVTier", extra_args: tuple[str, ...] = ()
    ) -> Path: ...


class StartRun(Protocol):
    """Starts `kvtier run`; whatever is left of it ends with the context."""

    def __call__(self, resource: Path, *options: str) -> AbstractContextManager[KvtierRun]: ...


@pytest.fixture(scope="session")
def tiny_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return random_model(TINY, TEXT * 20 + DIGITS, tmp_path_factory.mktemp("models"), print)


@pytest.fixture
def resource(tmp_path: Path) -> WriteResource:
    def write(*, replicas: int = 1, backend: str = "KVTier", extra_args: tuple[str, ...] = ()) -> Path:
        spec = {
            "model": {"name": "test/tiny"},
            "replicas": replicas,
            "backend": backend,
            "engine": {
                "device": "cpu",
                "maxModelLen": 1024,
                "blockSize": 32,
                "kvCacheMemory": "2Mi",
                "extraArgs": ["--enforce-eager", *extra_args],
            },
            "tiers": {"cpu": {"capacity": "16Mi"}},
        }
        document = {
            "apiVersion": "kvtier.dev/v1alpha1",
            "kind": "KVCacheTier",
            "metadata": {"name": "tiny"},
            "spec": spec,
        }
        path = tmp_path / "tiny.yaml"
        path.write_text(yaml.safe_dump(document))
        return path

    return write


@pytest.fixture
def start_run(tiny_model: Path, tmp_path: Path) -> StartRun:
    @contextmanager
    def start(resource: Path, *options: str) -> Iterator[KvtierRun]:
        with KvtierRun(
            (
                "run",
                "-f",
                str(resource),
                "--model",
                str(tiny_model),
                "--log-dir",
                str(tmp_path / "logs"),
                *options,
            )
        ) as run:
            yield run

    return start
