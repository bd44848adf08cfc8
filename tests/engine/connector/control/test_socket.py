"""The control socket of an engine with processes of its own: idle, and while requests run."""

import threading
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from tests.engine.connector.disk_engine import tier
from tests.engine.connector.memory_tier import TOGETHER
from tests.engine.connector.prompts import CACHED, PROMPTS, SMALL_DEVICE, answers, tokens_of

from kvtier_connector.config import kv_transfer_config
from kvtier_connector.core.control.client import ask, sockets_in

pytestmark = [pytest.mark.engine, pytest.mark.filterwarnings("ignore")]
ENOUGH_S = 120.0


def test_orders_are_done_while_the_engine_is_idle_and_while_requests_run(
    engine: Callable[..., Any], cold_tokens: list[list[int]], tmp_path: Path
) -> None:
    cold, together = cold_tokens[: len(PROMPTS)], cold_tokens[len(PROMPTS) :]
    with TemporaryDirectory(prefix="kvtier-") as folder:
        settings = tier(tmp_path / "disk")
        object.__setattr__(settings, "control_path", f"{folder}/control")
        with engine(kv_transfer_config(settings), processes=True, **SMALL_DEVICE) as llm:
            [path] = sockets_in(Path(folder) / "control")

            def order(**fields: object) -> dict[str, Any]:
                said = ask(path, fields, timeout_s=ENOUGH_S)
                assert "error" not in said, said
                return said

            assert order(verb="top")["tiers"][0]["used"] == 0, "an engine that has done nothing yet"
            assert tokens_of([answers(llm, [ids])[0] for ids in PROMPTS]) == cold
            assert [answers(llm, [ids])[0][1] for ids in PROMPTS[-1:]] == CACHED[-1:]
            said = order(verb="clear")
            assert said["cleared"]["cpu"] >= CACHED[-1] // 32
            assert [answers(llm, [ids])[0] for ids in PROMPTS] == list(zip(cold, [0] * 6, strict=True))

            is_over = threading.Event()
            cleared = []

            def clear_all_the_time() -> None:
                while not is_over.is_set():
                    cleared.append(order(verb="clear")["requests_under_way"])

            clearer = threading.Thread(target=clear_all_the_time)
            clearer.start()
            try:
                while not any(cleared):  # until one has come while some were under way
                    assert tokens_of(answers(llm, TOGETHER)) == together
            finally:
                is_over.set()
                clearer.join()
            order(verb="clear")
            assert [answers(llm, [ids])[0][1] for ids in (*PROMPTS, TOGETHER[0])] == [0] * 7

            order(verb="clear")
            while order(verb="top")["tiers"][-1]["used"] < CACHED[-1] // 32:
                answers(llm, PROMPTS[-1:])  # a busy disk is given less, and the rest with the next use
            order(verb="clear", tier="gpu")
            order(verb="clear", tier="cpu")
            fetched = order(verb="prefetch", tokens=PROMPTS[-1])
            while fetched["in_memory_tokens"] < 640:  # the engine is idle, and does no steps
                fetched = order(verb="prefetch", tokens=PROMPTS[-1])
