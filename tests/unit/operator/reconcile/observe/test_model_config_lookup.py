"""What the operator knows of a model that the catalogue lacks, and how often it asks."""

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

import orjson
import pytest

from kvtier_common.errors import KvtierError, TooLargeError, UnreachableError
from kvtier_operator.reconcile.cache.resources import CachedResource, Key, ReconcileState
from kvtier_operator.reconcile.facts.cached_plan import FoundModelConfig
from kvtier_operator.reconcile.observe.huggingface import HubClient, NotPublicError
from kvtier_operator.reconcile.observe.model_config_lookup import ModelConfigLookup

if TYPE_CHECKING:
    from kvtier_common.kubernetes.client import Api

KEY = Key("team", "qwen")
LLAMA = {"num_hidden_layers": 4, "num_attention_heads": 4, "head_dim": 64}


@dataclass
class Server:
    """An API server with one ConfigMap, or none."""

    data: Mapping[str, str] | None = None
    error: KvtierError | None = None
    asked: list[tuple[str, Mapping[str, str]]] = field(default_factory=list)

    async def get(self, path: str, query: Mapping[str, str], *, most_bytes: int) -> bytes:
        assert most_bytes <= 4 << 20
        self.asked.append((path, query))
        if self.error:
            raise self.error
        return orjson.dumps({"items": [] if self.data is None else [{"data": self.data}]})


@dataclass
class Asked:
    """A Hub that says this."""

    said: object
    asked: list[str] = field(default_factory=list)

    async def config(self, name: str, revision: str | None) -> tuple[dict[str, Any], str]:
        self.asked.append(f"{name}@{revision}")
        if isinstance(self.said, KvtierError):
            raise self.said
        return cast("dict[str, Any]", self.said), "the hub"


def resource(generation: int = 1, refusal: str = "", **model: object) -> CachedResource:
    spec = orjson.dumps({"spec": {"model": model}})
    return CachedResource("uid", generation, 1, False, spec, b"{}", "Unknown", ReconcileState(), refusal)  # noqa: FBT003


def found(
    server: Server, one: CachedResource, known: FoundModelConfig | None = None, hub: Asked | None = None
) -> FoundModelConfig:
    models = ModelConfigLookup(cast("Api", server), cast("HubClient", hub) if hub else None)
    one.state.model = known
    return asyncio.run(models.of(KEY, one))


def test_nothing_is_asked_for_what_is_known() -> None:
    server, hub = Server(), Asked(LLAMA)
    for one in (
        resource(name="Qwen/Qwen3-32B"),
        resource(name="x/y", geometry={"kvBytesPerToken": 1}),
        resource(refusal="too long"),
    ):
        assert found(server, one, hub=hub) == FoundModelConfig(1)
    assert (server.asked, hub.asked) == ([], [])


def test_a_config_map_is_read_once_a_generation() -> None:
    server = Server({"config.json": json.dumps(LLAMA)})
    one = resource(name="x/y", configRef={"name": "my-model"})
    first = found(server, one)
    assert first.parsed == LLAMA
    assert first.source == "ConfigMap team/my-model, config.json"
    assert server.asked == [
        ("/api/v1/namespaces/team/configmaps", {"fieldSelector": "metadata.name=my-model", "limit": "1"})
    ]
    assert found(server, one, first) is first
    assert found(server, resource(2, name="x/y", configRef={"name": "my-model"}), first).generation == 2
    assert len(server.asked) == 2


def test_one_goes_before_the_catalogue() -> None:
    server = Server({"config.json": json.dumps(LLAMA)})
    assert found(server, resource(name="Qwen/Qwen3-32B", configRef={"name": "a"})).parsed == LLAMA


@pytest.mark.parametrize(
    ("server", "words", "again"),
    [
        (Server(), "ConfigMap team/my-model is not there", True),
        (Server({}), "has neither config.json nor params.json", True),
        (Server({"config.json": "{"}), "data[config.json]: not JSON", True),
        (Server(error=TooLargeError("too long")), "is too long to be read", False),
    ],
)
def test_one_that_says_nothing_is_looked_for_again(server: Server, words: str, again: bool) -> None:
    one = resource(name="x/y", configRef={"name": "my-model"})
    said = found(server, one)
    assert words in said.missing
    assert (said.config, said.retry) == ("", again)
    found(server, one, said)
    assert len(server.asked) == (2 if again else 1)


def test_the_hub_is_asked_only_where_the_operator_is_told_to() -> None:
    one = resource(name="x/y", revision="v1")
    assert found(Server(), one) == FoundModelConfig(1)
    hub = Asked(LLAMA)
    said = found(Server(), one, hub=hub)
    assert (said.parsed, said.source, hub.asked) == (LLAMA, "the hub", ["x/y@v1"])
    assert found(Server(), one, said, hub) is said


@pytest.mark.parametrize(
    ("error", "again"), [(UnreachableError("no answer"), True), (NotPublicError("hidden"), False)]
)
def test_a_hub_that_says_nothing(error: KvtierError, again: bool) -> None:
    said = found(Server(), resource(name="x/y"), hub=Asked(error))
    assert (said.missing, said.retry) == (str(error), again)
