"""The operator's own client of Hugging Face, against a server of this test's."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping

import pytest
from aiohttp import web

from kvtier_common.errors import KvtierError, TooLargeError, UnreachableError
from kvtier_operator.reconcile.observe.huggingface import HubClient, NotPublicError

CONFIG = {"num_hidden_layers": 4}
PARAMS = {"dim": 64, "n_layers": 4, "n_heads": 4}
QUANTIZATION = {"producer": {"name": "modelopt"}}
Files = Mapping[str, object]


def asked(
    files: Files,
    monkeypatch: pytest.MonkeyPatch,
    ask: Callable[[HubClient], Awaitable[object]],
    status: int = 404,
) -> tuple[object, list[str]]:
    """What the hub's client says, and the paths that it asked for."""
    paths: list[str] = []

    async def answer(request: web.Request) -> web.Response:
        paths.append(request.path)
        content = files.get(request.path.rsplit("/", 1)[-1])
        if content is None:
            return web.Response(status=status)
        return web.Response(text=content if isinstance(content, str) else json.dumps(content))

    async def run() -> object:
        app = web.Application()
        app.router.add_get("/{path:.*}", answer)
        runner = web.AppRunner(app)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        [(host, port, *_)] = runner.addresses
        monkeypatch.setenv("HF_ENDPOINT", f"http://{host}:{port}/")
        try:
            return await ask(HubClient())
        except KvtierError as error:
            return error
        finally:
            await runner.cleanup()

    return asyncio.run(run()), paths


@pytest.mark.parametrize(
    ("files", "layers", "names"),
    [
        ({"config.json": CONFIG}, 4, ["config.json", "hf_quant_config.json"]),
        ({"config.json": CONFIG | {"quantization_config": {}}}, 4, ["config.json"]),
        (
            {"config.json": CONFIG, "hf_quant_config.json": QUANTIZATION},
            4,
            ["config.json", "hf_quant_config.json"],
        ),
        ({"params.json": PARAMS}, 4, ["config.json", "params.json", "hf_quant_config.json"]),
    ],
)
def test_what_it_asks_for(
    files: Files, layers: int, names: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    said, paths = asked(files, monkeypatch, lambda hub: hub.config("team/model", "v1/x"))
    assert isinstance(said, tuple)
    assert said[0]["num_hidden_layers"] == layers
    assert paths == [f"/team/model/resolve/v1/x/{name}" for name in names]  # aiohttp shows %2F as /
    assert ("quantization_config" in said[0]) == ("hf_quant_config.json" in files or names == ["config.json"])


@pytest.mark.parametrize(
    "name", ["/models/qwen", ".", "..", "a/b/c", "../x", "x/..", "a/..%2f", "team/mod el", "team/model\n"]
)
def test_what_is_no_name_is_not_asked_for(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    said, paths = asked({}, monkeypatch, lambda hub: hub.config(name, None))
    assert isinstance(said, NotPublicError)
    assert paths == []


@pytest.mark.parametrize(
    ("status", "kind"),
    [(404, NotPublicError), (401, NotPublicError), (403, NotPublicError), (503, UnreachableError)],
)
def test_what_it_does_not_show(status: int, kind: type[KvtierError], monkeypatch: pytest.MonkeyPatch) -> None:
    said, _ = asked({}, monkeypatch, lambda hub: hub.config("team/model", None), status)
    assert type(said) is kind
    assert "team/model" in str(said)


def test_no_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    with pytest.raises(UnreachableError, match=r"no answer to http://127\.0\.0\.1:9/team/model"):
        asyncio.run(HubClient().config("team/model", None))


def test_an_answer_without_an_end_is_not_read_to_it(monkeypatch: pytest.MonkeyPatch) -> None:
    said, _ = asked({"config.json": " " * (3 << 20)}, monkeypatch, lambda hub: hub.config("team/model", None))
    assert isinstance(said, TooLargeError)


def test_a_hub_that_is_slow_holds_up_nobody_else(monkeypatch: pytest.MonkeyPatch) -> None:
    async def three(hub: HubClient) -> list[object]:
        calls = (hub.config("team/model", None) for _ in range(3))
        return [*await asyncio.gather(*calls, return_exceptions=True)]

    said, _ = asked({"config.json": CONFIG}, monkeypatch, three)
    assert isinstance(said, list)
    assert [isinstance(each, UnreachableError) for each in said] == [False, False, True]
