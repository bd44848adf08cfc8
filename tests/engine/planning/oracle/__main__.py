"""Compares plans with vLLM: `python -m tests.engine.planning.oracle [PART OF A MODEL'S NAME ...]`.

Prints every figure that differs and counts them; vLLM is asked once, plans are made each time.
"""

import argparse
import json
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path

from tests.engine.planning.oracle.answers import MINORS, answers
from tests.engine.planning.oracle.compare import Difference, differences
from tests.engine.planning.oracle.sets import SETS


def main() -> int:
    """Ask, compare, print; exit 1 where anything differs."""
    parser = argparse.ArgumentParser(description="Compare plans with vLLM's own code.")
    parser.add_argument("names", nargs="*", help="parts of models' names (default: all)")
    parser.add_argument("--models", choices=SETS, default="usual", help="set of models (default: usual)")
    parser.add_argument("--minor", choices=MINORS, action="append", help="of vLLM (default: both)")
    parser.add_argument("--json", type=Path, help="write the differences here")
    parser.add_argument("--short", action="store_true", help="one line a model and figure")
    arguments = parser.parse_args()
    minors = arguments.minor or list(MINORS)
    with ThreadPoolExecutor() as pool:
        said = {minor: pool.submit(answers, minor, arguments.models) for minor in minors}
    found: dict[str, list[Difference]] = {}
    asked: Counter[str] = Counter()
    for minor in minors:
        chosen = [case for case in SETS[arguments.models]() if _is_asked(case.name, arguments.names)]
        found[minor] = [
            difference
            for case in chosen
            for difference in differences(case, said[minor].result()[case.name], minor)
        ]
        asked[minor] = sum(len(said[minor].result()[case.name]) for case in chosen)
        _show(minor, found[minor], short=arguments.short)
    for minor in minors:
        kinds = Counter(each.figure for each in found[minor])
        apart = len({(each.case, each.combination) for each in found[minor]})
        print(f"vLLM {minor}: {asked[minor]} combinations, {apart} differ: {dict(kinds)}")  # noqa: T201 - a program
    if arguments.json:
        data = {minor: [asdict(each) for each in listed] for minor, listed in found.items()}
        arguments.json.write_text(json.dumps(data, indent=1))
    return 1 if any(found.values()) else 0


def _is_asked(name: str, parts: list[str]) -> bool:
    return not parts or any(part.lower() in name.lower() for part in parts)


def _show(minor: str, found: list[Difference], *, short: bool) -> None:
    counted = Counter((each.case, each.figure) for each in found)
    shown: set[tuple[str, str]] = set()
    for each in found:
        key = (each.case, each.figure)
        if short and key in shown:
            continue
        shown.add(key)
        more = f" (and {counted[key] - 1} more)" if short and counted[key] > 1 else ""
        where = f"{minor} | {each.case} | {each.combination} | {each.figure}"
        print(f"{where} | vLLM {each.vllm} | plan {each.plan}{more}"[:400])  # noqa: T201 - as above


if __name__ == "__main__":
    sys.exit(main())
