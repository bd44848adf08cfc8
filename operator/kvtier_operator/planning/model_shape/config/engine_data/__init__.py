"""What the engine knows of a model that its file leaves out, as `make generate` wrote it down."""

import json
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any


@cache
def generated_table(name: str) -> Mapping[str, Any]:
    """A generated file of this folder, by its name without `.json`."""
    whole: Mapping[str, Any] = json.loads(files(__name__).joinpath(f"{name}.json").read_text("utf-8"))
    return whole
