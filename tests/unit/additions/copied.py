"""A copy of the packages to add something to, which says how many files that took."""

import os
import shutil
import subprocess
import sys
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[3]
COPIED: Final = (
    "operator/kvtier_operator",
    "connector/kvtier_common",
    "connector/kvtier_connector",
    "scorer/kvtier_scorer",
    "tests/unit/operator/golden/input",
    "docs/operations/alerts.md",
    "pyproject.toml",
)
_PATHS: Final = ("operator", "connector", "scorer", ".")
_METADATA: Final = "kvtier-0.0.0.dist-info"


@dataclass(frozen=True, slots=True)
class Copied:
    """The packages, and what else a contributor may have to change, under a folder of their own."""

    root: Path

    def write(self, path: str, text: str) -> None:
        """Add a file."""
        assert not (self.root / path).exists()
        (self.root / path).write_text(text, encoding="utf-8")

    def insert(self, path: str, before: str, text: str) -> None:
        """Write `text` in a file before something that stands there once."""
        found = (self.root / path).read_text(encoding="utf-8")
        assert found.count(before) == 1, (path, before)
        (self.root / path).write_text(found.replace(before, text + before), encoding="utf-8")

    def replace(self, path: str, before: str, text: str) -> None:
        """Write `text` in a file in place of something that stands there once."""
        found = (self.root / path).read_text(encoding="utf-8")
        assert found.count(before) == 1, (path, before)
        (self.root / path).write_text(found.replace(before, text), encoding="utf-8")

    def changed(self) -> set[str]:
        """Paths of the files that are new or differ."""
        files = (path for path in self.root.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
        paths = (file.relative_to(self.root) for file in files if _METADATA not in file.parts)
        return {str(path) for path in paths if _differ(self.root / path, ROOT / path)}

    def python(self, *arguments: str) -> str:
        """What a Python that finds these packages prints; fails unless it ends well."""
        ran = subprocess.run(  # noqa: S603 - this very Python
            [sys.executable, *arguments],
            check=False,
            capture_output=True,
            text=True,
            cwd=self.root,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(str(self.root / path) for path in _PATHS)},
        )
        assert ran.returncode == 0, ran.stderr
        return ran.stdout

    def kvtier(self, *arguments: str) -> str:
        """What the `kvtier` command prints, as it would be installed with pyproject.toml as it is now."""
        project = tomllib.loads((self.root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
        folder = self.root / _METADATA
        folder.mkdir(exist_ok=True)
        (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: kvtier\nVersion: 0.0.0\n")
        groups = project["entry-points"].items()
        lines = [
            f"[{group}]\n" + "".join(f"{k} = {v}\n" for k, v in points.items()) for group, points in groups
        ]
        (folder / "entry_points.txt").write_text("\n".join(lines))
        return self.python("-m", "kvtier_operator.cli", *arguments)


def copy_sources(root: Path) -> Copied:
    """Copy what may have to change."""
    for each in COPIED:
        source, target = ROOT / each, root / each
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source, target)
    return Copied(root)


def _differ(one: Path, other: Path) -> bool:
    return not other.exists() or one.read_bytes() != other.read_bytes()
