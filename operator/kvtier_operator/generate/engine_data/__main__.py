"""Files that are generated from the engine's own packages: `python -m kvtier_operator.generate.engine_data`.

With --check it says which were generated from other packages than requirements.lock names, or by other
generators. Their contents take minutes to compare: tests/engine/planning does.
"""

import argparse
import json
import re
import sys
from collections.abc import Callable, Mapping
from typing import Final

from kvtier_operator.generate.engine_data.architectures import (
    ARCHITECTURES,
    ENCODERS,
    model_architectures,
    model_encoders,
)
from kvtier_operator.generate.engine_data.defaults import DEFAULTS, model_defaults
from kvtier_operator.generate.engine_data.quantization import QUANTIZATION, model_quantization
from kvtier_operator.generate.engine_data.serve_options import SERVE_OPTIONS, serve_options
from kvtier_operator.generate.engine_data.upstream import GENERATOR, generator_digest
from kvtier_operator.generate.files import ROOT

_FILES: Final[Mapping[str, Callable[[], str | None]]] = {
    DEFAULTS: model_defaults,
    ENCODERS: model_encoders,
    ARCHITECTURES: model_architectures,
    QUANTIZATION: model_quantization,
    SERVE_OPTIONS: serve_options,
}
_PIN: Final = re.compile(r"^([a-z0-9-]+)==([^ ;\\]+)", re.MULTILINE)


def main() -> int:
    """Write the files, or compare what they were generated from; exit 1 when something differs."""
    parser = argparse.ArgumentParser(description="Write what is generated from the engine's packages.")
    parser.add_argument(
        "--check", action="store_true", help="write nothing; exit 1 and name what is out of date"
    )
    if not parser.parse_args().check:
        _write()
        return 0
    stale = [path for path in _FILES if _is_stale((ROOT / path).read_text(encoding="utf-8"))]
    for path in stale:
        print(f"{path} is out of date: run `make setup generate` and commit it", file=sys.stderr)  # noqa: T201 - a program
    return 1 if stale else 0


def _write() -> None:
    for path, generate in _FILES.items():
        text = generate()
        if text is None:
            print(f"{path} was left as it is: the engine is not installed (make setup)")  # noqa: T201 - a program
        elif not (ROOT / path).exists() or text != (ROOT / path).read_text(encoding="utf-8"):
            (ROOT / path).write_text(text, encoding="utf-8")
            print(f"wrote {path}")  # noqa: T201 - a program


def _is_stale(written: str) -> bool:
    pins = dict(_PIN.findall((ROOT / "requirements.lock").read_text(encoding="utf-8")))
    generated_from: Mapping[str, str] = json.loads(written)["generated_from"]
    now = {source: pins.get(source) for source in generated_from} | {GENERATOR: generator_digest()}
    return generated_from != now


if __name__ == "__main__":
    sys.exit(main())
