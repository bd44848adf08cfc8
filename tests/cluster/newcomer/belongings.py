"""What a newcomer has before the first command: a checkout, Python, kubectl, helm and a cluster."""

import os
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from tests.cluster.harness.operator.places import ROOT
from tests.cluster.harness.programs.tools import Say, programs

_LEFT_OUT: Final = (".git", ".venv", "build", "dist", "__pycache__", ".*_cache", ".hypothesis", "*.egg-info")
# Of the tests' own environment; the rest says how to reach a package index. GNU Readline exports the last two
# into pytest's workers.
_OURS: Final = (
    *("PYTHON", "VIRTUAL_ENV", "COVERAGE", "COV_", "KVTIER_", "KUBE", "XDG_", "HELM_"),
    *("COLUMNS", "LINES"),
)


def checkout(target: Path) -> Path:
    """The sources, without what was made in them."""
    shutil.copytree(ROOT, target, ignore=shutil.ignore_patterns(*_LEFT_OUT))
    return target


def variables(home: Path, kubeconfig: Path, say: Say) -> Mapping[str, str]:
    """A newcomer's environment: a new home, and on the path what the pages take for granted.

    Python's packages come in the locked versions: what was published since yesterday is no fault of the page.
    """
    tools = home / "tools"
    tools.mkdir(parents=True)
    for name, program in programs(["kubectl", "helm"], say).items():
        (tools / name).symlink_to(program)
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    (tools / "python3").symlink_to(Path(sys.base_exec_prefix) / "bin" / version)
    cache = (
        os.environ.get("PIP_CACHE_DIR") or f"{os.environ.get('XDG_CACHE_HOME') or Path.home() / '.cache'}/pip"
    )
    return {
        **{name: value for name, value in os.environ.items() if not name.startswith(_OURS)},
        "HOME": str(home),
        "PATH": os.pathsep.join((str(tools), "/usr/local/bin", "/usr/bin", "/bin")),
        "KUBECONFIG": str(kubeconfig),
        "PIP_CACHE_DIR": cache,
        "PIP_CONSTRAINT": str(_constraints(home)),
    }


def _constraints(home: Path) -> Path:
    """The lock without its hashes: with them pip takes nothing that has none, such as a checkout."""
    lines = (ROOT / "requirements-light.lock").read_text(encoding="utf-8").splitlines()
    target = home / "constraints.txt"
    kept = (line.removesuffix(" \\") for line in lines if "--hash=" not in line)
    target.write_text("\n".join(kept), encoding="utf-8")
    return target
