"""Writes every generated file: `python -m kvtier_operator.generate`; with --check, says which differ."""

import argparse
import sys
from pathlib import Path

from kvtier_operator.generate.files import ROOT, generated_files, out_of_date


def main() -> int:
    """Write the files, or compare them; exit 1 when a comparison finds a difference."""
    parser = argparse.ArgumentParser(description="Write every generated file.")
    parser.add_argument(
        "--check", action="store_true", help="write nothing; exit 1 and name the files that differ"
    )
    parser.add_argument(
        "--root",
        type=Path,
        default=ROOT,
        help="where to write or compare (default: this source's repository)",
    )
    arguments = parser.parse_args()
    root: Path = arguments.root
    if not (root / "pyproject.toml").is_file():
        print(f"{root} is not a checkout of kvtier; name one with --root", file=sys.stderr)  # noqa: T201 - a program
        return 2
    stale = out_of_date(root)
    if arguments.check:
        for path in stale:
            print(f"{path} is out of date: run `make generate` and commit it", file=sys.stderr)  # noqa: T201
        return 1 if stale else 0
    texts = generated_files()
    for path in stale:
        target = root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(texts[path], encoding="utf-8")
        print(f"wrote {path}")  # noqa: T201
    return 0


if __name__ == "__main__":
    sys.exit(main())
