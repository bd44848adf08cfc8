"""An engine whose server has the middleware: warm before it is healthy, and told of prompts that come."""

import json
from pathlib import Path

import pytest
from tests.engine.runtime.attached import TheirEngine, their_engine
from tests.engine.runtime.conftest import TEXT

from kvtier_common.metrics import prefixes as names
from kvtier_connector.config import MIB

pytestmark = [pytest.mark.engine, pytest.mark.filterwarnings("ignore")]

PREFIX = TEXT * 2
CHAT = [{"role": "system", "content": TEXT}, {"role": "user", "content": "a"}]
OPTIONS = (
    *("--middleware", "kvtier_connector.serve.middleware.KVTierMiddleware"),
    "--enable-prompt-tokens-details",
)


def cached_tokens(engine: TheirEngine, prompt: str) -> tuple[int, int]:
    """Tokens of a prompt, and how many of them were found in a cache."""
    usage = engine.post("/v1/completions", {"prompt": prompt, "max_tokens": 1, "temperature": 0})["usage"]
    return usage["prompt_tokens"], (usage["prompt_tokens_details"] or {}).get("cached_tokens", 0)


@pytest.mark.parametrize(
    ("shape", "older", "options"),
    [
        pytest.param("serve", False, ["--api-server-count", "2"], id="two-servers", marks=pytest.mark.long),
        pytest.param("module", True, [], id="older", marks=pytest.mark.long),
    ],
)
def test_its_first_request_finds_the_prefix_and_an_announced_one_computes_nothing(
    shape: str, older: bool, options: list[str], tiny_model: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "prefixes"
    folder.mkdir()
    (folder / "system.json").write_text(json.dumps({"text": PREFIX}))
    (folder / "tools.json").write_text(json.dumps({"messages": CHAT}))
    (folder / "wrong.json").write_text(json.dumps({"txet": PREFIX}))
    variables = {"KVTIER_PREFIXES": str(folder), "KVTIER_PREFIXES_WITHIN_S": "600", "VLLM_API_KEY": "secret"}
    settings = {"cpu_capacity_bytes": 16 * MIB}
    with their_engine(
        shape, tiny_model, tmp_path, settings, older=older, options=[*OPTIONS, *options], variables=variables
    ) as engine:
        assert engine.metrics(names.COMPUTED) == {("system",): 1, ("tools",): 1}
        assert engine.metrics(names.CACHED_TOKENS)[("system",)] == 0
        assert engine.log.count("prefixes computed in") == 1, "by one server, of however many"
        assert "wrong.json: txet: unknown" in engine.log

        [tokens] = [engine.metrics(names.TOKENS)[("system",)]]
        asked, cached = cached_tokens(engine, PREFIX + "and more")
        assert asked > tokens
        assert cached == tokens // 32 * 32 > 0

        computed = engine.metric("vllm:prompt_tokens_total")
        hint = {"kv_transfer_params": {"kvtier": {"prefetch": True}}}
        announced = engine.post("/v1/completions", {"prompt": PREFIX, "max_tokens": 9, **hint})
        assert announced["usage"]["prompt_tokens"] == tokens
        assert announced["choices"][0]["text"] == ""
        chat = engine.post("/v1/chat/completions", {"messages": CHAT, **hint})
        assert chat["usage"]["prompt_tokens"] == engine.metrics(names.TOKENS)[("tools",)]
        assert engine.metric("vllm:prompt_tokens_total") == computed
