"""Kubernetes' own programs, built once from Go modules and kept in the user's cache."""

import fcntl
import hashlib
import os
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Final

_MODULE: Final = Path(__file__).resolve().parents[2] / "tools" / "kubernetes"
_PACKAGES: Final = {
    "etcd": "go.etcd.io/etcd/server/v3",
    "kube-apiserver": "k8s.io/kubernetes/cmd/kube-apiserver",
}
# How often to say that a build goes on: compiled packages between two lines.
_PROGRESS_EVERY: Final = 200

Say = Callable[[str], None]


class MissingToolError(Exception):
    """Something that the tests need and cannot make; the message says what to do."""


def program(name: str, say: Say) -> Path:
    """Path of a control plane program; builds it the first time, which takes minutes.

    Args:
        name: `etcd` or `kube-apiserver`.
        say: Takes lines about the progress of a build.

    Raises:
        MissingToolError: No Go to build it with, or the build failed.
    """
    if assets := os.environ.get("KUBEBUILDER_ASSETS"):
        given = Path(assets) / name
        if not given.is_file():
            raise MissingToolError(f"KUBEBUILDER_ASSETS has no {name}: unset it or name another folder")
        return given
    folder = _cache_folder()
    built = folder / name
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # another test run may be building the same
        if not built.is_file():
            _build(name, built, say)
    return built


def kubernetes_version() -> str:
    """The version in tests/tools/kubernetes/go.mod, such as `v1.34.4`."""
    found = re.search(r"^\s*k8s\.io/kubernetes (v\S+)", (_MODULE / "go.mod").read_text(), re.MULTILINE)
    assert found, "go.mod requires no k8s.io/kubernetes"
    return found[1]


def go() -> str:
    """Path of the Go command."""
    if found := shutil.which("go"):
        return found
    raise MissingToolError(
        "Go is missing, which the cluster tests build a Kubernetes API server with: install Go 1.24 or newer "
        "(https://go.dev/dl), or set KUBEBUILDER_ASSETS to a folder with etcd and kube-apiserver"
    )


def _cache_folder() -> Path:
    """One folder for each set of sources."""
    sums = hashlib.sha256((_MODULE / "go.mod").read_bytes() + (_MODULE / "go.sum").read_bytes()).hexdigest()
    root = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return root / "kvtier" / "tools" / f"kubernetes-{kubernetes_version()}-{sums[:12]}"


def _build(name: str, target: Path, say: Say) -> None:
    version = kubernetes_version()
    major, minor = version.removeprefix("v").split(".")[:2]
    # Without these the server calls itself v0.0.0-master and clients reject the version.
    prefix = "k8s.io/component-base/version"
    stamp = f"-X {prefix}.gitVersion={version} -X {prefix}.gitMajor={major} -X {prefix}.gitMinor={minor}"
    command = [go(), "build", "-v", "-ldflags", f"-s -w {stamp}", "-o", f"{target}.new", _PACKAGES[name]]
    say(f"building {name} from Go modules, once (minutes on a small machine): {target}")
    said: list[str] = []
    with subprocess.Popen(command, cwd=_MODULE, stderr=subprocess.PIPE, text=True) as build:  # noqa: S603 - our own command
        assert build.stderr
        for line in build.stderr:
            said.append(line.rstrip())
            if len(said) % _PROGRESS_EVERY == 0:
                say(f"building {name}: {len(said)} packages downloaded or compiled")
    if build.returncode:
        raise MissingToolError(f"{name} could not be built: " + " | ".join(said[-5:]))
    Path(f"{target}.new").rename(target)
    say(f"built {name}")
