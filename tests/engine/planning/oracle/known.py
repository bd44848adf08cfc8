"""What is known to differ: figures by minor and model, in known.json. The tests let it only shrink."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from tests.engine.planning.oracle.compare import Difference

_FILE: Final = Path(__file__).with_name("known.json")


def known(minor: str, case: str) -> set[str]:
    """Figures of this model that are known to differ."""
    return set(json.loads(_FILE.read_text())[minor].get(case, []))


def write_known(found: Mapping[str, Sequence[Difference]]) -> None:
    """Replace the file."""
    figures: dict[str, dict[str, set[str]]] = {}
    for minor, listed in found.items():
        by_case = figures.setdefault(minor, {})
        for each in listed:
            by_case.setdefault(each.case, set()).add(each.figure)
    data = {minor: {case: sorted(names) for case, names in by.items()} for minor, by in figures.items()}
    _FILE.write_text(json.dumps(data, indent=1) + "\n")
