"""Writes every generated file: `python -m kvtier_operator.generate`; with --check, says which differ."""

import argparse
import sys
from pathlib import Path
from typing import Any, Final

import yaml

from kvtier_operator.api.crd import CRD_NAME, crd, openapi_schema
from kvtier_operator.api.reference import reference

_NOTICE: Final = "Generated from operator/kvtier_operator/api, do not edit: run `make generate`."
# operator/kvtier_operator/generate.py -> the repository
_ROOT: Final = Path(__file__).resolve().parents[2]
_YAML_WIDTH: Final = 110


class _IndentedDumper(yaml.SafeDumper):
    """Indents lists under their key, as Kubernetes' own documents are."""

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> Any:  # noqa: ANN401 - PyYAML's
        del indentless
        return super().increase_indent(flow=flow, indentless=False)


def generated_files() -> dict[str, str]:
    """Every generated file: path from the repository's root, and its whole text."""
    definition = yaml.dump(crd(), Dumper=_IndentedDumper, sort_keys=False, width=_YAML_WIDTH)
    crd_yaml = f"# {_NOTICE}\n{definition}"
    return {
        f"charts/tiered-prefix-cache/crds/{CRD_NAME}.yaml": crd_yaml,
        f"manifests/base/{CRD_NAME}.yaml": crd_yaml,
        "docs/reference/api.md": f"<!-- {_NOTICE} -->\n{reference(openapi_schema())}",
    }


def out_of_date(root: Path) -> list[str]:
    """Paths of the generated files below `root` that are missing or differ from what the sources generate."""
    return [path for path, text in generated_files().items() if _content(root / path) != text]


def _content(path: Path) -> str | None:
    return path.read_text(encoding="utf-8") if path.is_file() else None


def main() -> int:
    """Write the files, or compare them; exit 1 when a comparison finds a difference."""
    parser = argparse.ArgumentParser(description="Write every generated file.")
    parser.add_argument(
        "--check", action="store_true", help="write nothing; exit 1 and name the files that differ"
    )
    parser.add_argument(
        "--root", type=Path, default=_ROOT, help="the repository (default: this source's own)"
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
    for path in stale:
        target = root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(generated_files()[path], encoding="utf-8")
        print(f"wrote {path}")  # noqa: T201
    return 0


if __name__ == "__main__":
    sys.exit(main())
