"""Files that are generated from the engine's own packages: `python -m kvtier_operator.generate.engine_data`.

With --check it says which differ. Where the packages are not installed (`make setup-light`), it compares the
versions that the files name with those in requirements.lock, and says that it did no more.
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
from kvtier_operator.generate.engine_data.serve_options import SERVE_OPTIONS, serve_options
from kvtier_operator.generate.files import ROOT

_FILES: Final[Mapping[str, Callable[[], str | None]]] = {
    DEFAULTS: model_defaults,
    ENCODERS: model_encoders,
    ARCHITECTURES: model_architectures,
    SERVE_OPTIONS: serve_options,
}
_PIN: Final = re.compile(r"^([a-z0-9-]+)==([^ ;\\]+)", re.MULTILINE)


def main() -> int:
    """Write the files, or compare them; exit 1 when a comparison finds a difference."""
    parser = argparse.ArgumentParser(description="Write what is generated from the engine's packages.")
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 and name what differs")
    check = parser.parse_args().check
    stale = False
    for path, generate in _FILES.items():
        written = (ROOT / path).read_text(encoding="utf-8")
        text = generate()
        if text is None:
            print(f"{path}: its contents were not compared, the engine is not installed (make setup)")  # noqa: T201 - a program
            differs = _names_other_versions(written)
        else:
            differs = written != text
            if differs and not check:
                (ROOT / path).write_text(text, encoding="utf-8")
                print(f"wrote {path}")  # noqa: T201 - as above
        if differs and (check or text is None):
            print(f"{path} is out of date: run `make setup generate` and commit it", file=sys.stderr)  # noqa: T201
            stale = True
    return 1 if stale else 0


def _names_other_versions(written: str) -> bool:
    pins = dict(_PIN.findall((ROOT / "requirements.lock").read_text(encoding="utf-8")))
    versions: Mapping[str, str] = json.loads(written)["generated_from"]
    return any(pins.get(package) != version for package, version in versions.items())


if __name__ == "__main__":
    sys.exit(main())
