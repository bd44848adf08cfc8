"""Asks vLLM about every model and combination, in a process of its own.

`python -m tests.engine.planning.oracle.ask SET FOLDER [PART OF A NAME ...]`: FOLDER gets a file of JSON a
model of the set that is not there yet, from the installed vLLM where KVTIER_TESTS_OLDER_VLLM is in the
environment, otherwise from the newer minor.
"""

import gc
import json
import logging
import sys
import warnings
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tests.engine.planning.oracle.cases import Case, vllm_arguments, write_for_vllm
from tests.engine.planning.oracle.combinations import Combination
from tests.engine.planning.oracle.like_cuda import look_like_cuda
from tests.engine.planning.oracle.sets import SETS
from tests.shared.newer_vllm import use_newer_vllm

from kvtier_connector.bench.vllm_arguments import serve_parser


def main() -> None:
    """Ask, and write the answers down."""
    warnings.simplefilter("ignore")
    use_newer_vllm(lambda line: print(line, file=sys.stderr, flush=True))  # noqa: T201 - whoever waits
    look_like_cuda()
    gc.freeze()
    gc.disable()  # a model at a time is let go instead
    logging.disable(logging.ERROR)
    asked, answers, names = SETS[sys.argv[1]], Path(sys.argv[2]), sys.argv[3:]
    answers.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory() as scratch:
        for case in asked():
            target = answers / f"{case.key}.json"
            if target.exists() or (names and not any(name in case.name for name in names)):
                continue
            found = list(_about(case, write_for_vllm(case, Path(scratch))))
            part = target.with_suffix(".part")
            part.write_text(json.dumps(found))
            part.rename(target)


def _about(case: Case, folder: Path) -> Iterator[dict[str, Any]]:
    model = vllm_arguments(folder)
    for _, asked in groupby(case.combinations, key=lambda each: (each.ranks, each.method, each.arguments)):
        yield from _split(model, list(asked), folder)
    gc.collect()
    print(".", end="", file=sys.stderr, flush=True)  # noqa: T201 - as above


def _split(model: dict[str, Any], asked: list[Combination], folder: Path) -> Iterator[dict[str, Any]]:
    """Those of one tensor-parallel size, which have one model built."""
    from tests.engine.planning.oracle.answer import answer  # noqa: PLC0415 - vLLM has to see another platform first
    from tests.engine.planning.oracle.build import Built  # noqa: PLC0415 - as above

    built: Built | None = None
    for combination in asked:
        said: dict[str, Any]
        try:
            arguments = model | combination.vllm_arguments() | _parse(combination.words(folder))
            if built is None:
                built = Built(arguments)
            found = answer(built.again(arguments))
            said = {"answer": found.as_data() if found else None}
        except (Exception, SystemExit) as error:  # noqa: BLE001 - vLLM refuses in many ways, all are answers
            said = {"refused": _line(error)}
        yield combination.as_data() | said


def _parse(words: list[str]) -> dict[str, Any]:
    """What these words of `vllm serve` say."""
    if not words:
        return {}
    read = serve_parser().parse_args
    plain = vars(read([]))
    return {name: value for name, value in vars(read(words)).items() if value != plain[name]}


def _line(error: BaseException) -> str:
    text = " ".join(str(error).split()).removeprefix("1 validation error for ")
    return f"{type(error).__name__}: {text}"[:400]


if __name__ == "__main__":
    main()
