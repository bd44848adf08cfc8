"""Where the control socket cannot be made: a pod of others serves without it, one of ours does not start."""

import logging
from pathlib import Path
from queue import Queue
from types import SimpleNamespace
from typing import Any

import pytest

from kvtier_connector.config import ConnectorConfig
from kvtier_connector.errors import SettingError

pytestmark = [pytest.mark.engine, pytest.mark.filterwarnings("ignore")]
READ_ONLY = "/proc/kvtier-control"
"""No folder can be made there, by nobody."""


def _open(monkeypatch: pytest.MonkeyPatch, *, attached: bool) -> object:
    from kvtier_connector.vllm.control import start  # noqa: PLC0415 - imports vLLM

    engine = SimpleNamespace(
        input_queue=Queue(), _handle_client_request=print, scheduler=None, request_block_hasher=None
    )
    monkeypatch.setattr(start, "engine_being_made", lambda: engine)
    monkeypatch.setattr(start, "DeviceCache", lambda _manager: None)
    parts: Any = SimpleNamespace(
        parallel_config=SimpleNamespace(data_parallel_index=0),
        model_config=SimpleNamespace(max_model_len=1024),
        hold_manager=print,
        memory=None,
    )
    settings = ConnectorConfig(cpu_capacity_bytes=1 << 30, control_path=READ_ONLY, attached=attached)
    return start.open_control(settings, parts, parts, parts, parts)


def test_a_pod_of_others_goes_on_without_a_socket_and_says_so_in_a_line(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, "vllm.kvtier"):
        assert _open(monkeypatch, attached=True) is None
    [line] = [record.getMessage() for record in caplog.records]
    assert line.startswith("kvtier: the engine goes on without a control socket: ")
    assert READ_ONLY in line
    assert not Path(READ_ONLY).exists()


def test_an_engine_of_ours_says_why_it_does_not_start(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(SettingError, match=rf"control_path: {READ_ONLY}: [^\n]+$"):
        _open(monkeypatch, attached=False)
