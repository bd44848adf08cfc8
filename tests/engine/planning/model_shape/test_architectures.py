"""architectures.json is what the installed vLLM serves, and what the newer minor does."""

import json
from pathlib import Path
from typing import Final

import pytest

from kvtier_operator.generate.engine_data.architectures import (
    ADDED_IN_33,
    ADDED_TO_LIBRARY_IN_33,
    ARCHITECTURES,
)
from kvtier_operator.generate.engine_data.upstream import (
    library_architectures,
    own_architectures,
    removed_architectures,
)
from kvtier_operator.generate.files import ROOT

pytestmark = [pytest.mark.engine, pytest.mark.filterwarnings("ignore")]

_DROPPED_IN_33: Final = {"MedusaModel"}


def test_the_file_is_up_to_date() -> None:
    written = json.loads(Path(ROOT, ARCHITECTURES).read_text(encoding="utf-8"))
    import vllm  # noqa: PLC0415 - takes seconds

    newer = not vllm.__version__.startswith("0.32")
    assert own_architectures() == set(written["own"]) - (_DROPPED_IN_33 if newer else {*ADDED_IN_33})
    assert library_architectures() == set(written["library"]) - (
        set() if newer else {*ADDED_TO_LIBRARY_IN_33}
    )
    assert removed_architectures() == written["removed"]


def test_ends_of_names() -> None:
    from vllm.config.model import iter_architecture_defaults  # noqa: PLC0415 - takes seconds

    from kvtier_operator.planning.model_shape.config.engine_data.architectures import SUFFIXES  # noqa: PLC0415 - beside it

    assert tuple(suffix for suffix, _ in iter_architecture_defaults()) == SUFFIXES
