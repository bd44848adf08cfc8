"""encoders.json is what the installed vLLM says of its architectures, and the newer minor no less."""

import json
from pathlib import Path

import pytest

from kvtier_operator.generate.engine_data.architectures import ENCODERS, encoder_types, encoders
from kvtier_operator.generate.files import ROOT

pytestmark = [pytest.mark.engine, pytest.mark.filterwarnings("ignore")]


def test_the_file_is_up_to_date() -> None:
    whole = json.loads(Path(ROOT, ENCODERS).read_text(encoding="utf-8"))
    written = set(whole["architectures"])
    import vllm  # noqa: PLC0415 - takes seconds

    now = set(encoders())
    assert written == now if vllm.__version__.startswith("0.32") else written <= now
    assert "XLMRobertaModel" in now
    assert whole["model_types"] == sorted(encoder_types())
