"""Programs that the tests need, built once from Go modules and kept in the user's cache."""

import hashlib
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.cluster.harness.programs.locked import lock

_TOOLS: Final = Path(__file__).resolve().parents[3] / "tools"
# How often to say that a build goes on.
_PROGRESS_S: Final = 15.0

Say = Callable[[str], None]


class MissingToolError(Exception):
    """Something that the tests need and cannot make; the message says what to do."""


@dataclass(frozen=True, slots=True)
class Module:
    """A folder under tests/tools with a go.mod that pins programs.

    Attributes:
        name: The folder.
        source: The Go module that the programs' version is that of; empty for programs of our own.
        packages: Program to Go package.
        stamp: Go variables that hold the version; left alone, some servers call themselves v0.0.0.
        only_long: Whether only long tests need them.
    """

    name: str
    source: str
    packages: Mapping[str, str]
    stamp: Mapping[str, str]
    only_long: bool = False

    @property
    def folder(self) -> Path:
        """Where go.mod is."""
        return _TOOLS / self.name

    @property
    def version(self) -> str:
        """The version in go.mod, such as `v1.34.4`."""
        if not self.source:
            return "v0.0.0"
        match = re.search(
            rf"^\s*(?:require )?{re.escape(self.source)} (v\S+)",
            (self.folder / "go.mod").read_text(),
            re.MULTILINE,
        )
        assert match, f"{self.folder}/go.mod requires no {self.source}"
        return match[1]

    @property
    def cache(self) -> Path:
        """Where its programs are kept: one folder for each set of sources."""
        sources = [self.folder / "go.mod", self.folder / "go.sum", *sorted(self.folder.glob("*.go"))]
        sums = hashlib.sha256(
            b"".join(source.read_bytes() for source in sources if source.exists())
        ).hexdigest()
        return cache_folder() / "tools" / f"{self.name}-{self.version}-{sums[:12]}"


_GAIE: Final = "sigs.k8s.io/gateway-api-inference-extension"
_DISTRIBUTION: Final = "github.com/distribution/distribution/v3"
_KUBERNETES: Final = Module(
    "kubernetes",
    "k8s.io/kubernetes",
    {
        "etcd": "go.etcd.io/etcd/server/v3",
        **{
            name: f"k8s.io/kubernetes/cmd/{name}"
            for name in (
                "kube-apiserver",
                "kube-controller-manager",
                "kube-scheduler",
                "kube-proxy",
                "kubectl",
                "kubelet",
            )
        },
    },
    {
        "k8s.io/component-base/version.gitVersion": "{version}",
        "k8s.io/component-base/version.gitMajor": "{major}",
        "k8s.io/component-base/version.gitMinor": "{minor}",
    },
)
# In the order in which they are built: what tests of a node need comes first.
MODULES: Final = (
    _KUBERNETES,
    Module("pause", "", {"pause": "kvtier.dev/tests/tools/pause"}, {}),
    Module("picker", _GAIE, {"epp": f"{_GAIE}/cmd/epp"}, {}),
    Module(
        "helm",
        "helm.sh/helm/v4",
        {"helm": "helm.sh/helm/v4/cmd/helm"},
        {"helm.sh/helm/v4/internal/version.version": "{version}"},
    ),
    Module("kwok", "sigs.k8s.io/kwok", {"kwok": "sigs.k8s.io/kwok/cmd/kwok"}, {}),
    Module("oras", "oras.land/oras", {"oras": "oras.land/oras/cmd/oras"}, {}),
    Module("registry", _DISTRIBUTION, {"registry": f"{_DISTRIBUTION}/cmd/registry"}, {}),
    Module(
        "actionlint",
        "github.com/rhysd/actionlint",
        {"actionlint": "github.com/rhysd/actionlint/cmd/actionlint"},
        {},
    ),
    Module("gopher-lua", "github.com/yuin/gopher-lua", {"glua": "github.com/yuin/gopher-lua/cmd/glua"}, {}),
    Module(
        "h2spec",
        "github.com/summerwind/h2spec",
        {"h2spec": "github.com/summerwind/h2spec/cmd/h2spec"},
        {},
        only_long=True,
    ),
    # Owners of vLLM's pods.
    Module(
        "llmisvc",
        "github.com/kserve/kserve",
        {"llmisvc": "github.com/kserve/kserve/cmd/llmisvc"},
        {},
        only_long=True,
    ),
    Module("lws", "sigs.k8s.io/lws", {"lws": "sigs.k8s.io/lws/cmd"}, {}, only_long=True),
    # Earlier ones, whose configuration has another form.
    *(
        Module(f"picker-{minor}", _GAIE, {f"epp-{minor}": f"{_GAIE}/cmd/epp"}, {}, only_long=True)
        for minor in ("1.4",)
    ),
)


def program(name: str, say: Say) -> Path:
    """Path of a program; builds it the first time, which takes minutes.

    Args:
        name: A program of `MODULES`.
        say: Takes lines about the progress of a build.

    Raises:
        MissingToolError: No Go to build it with, or the build failed.
    """
    return programs([name], say)[name]


def programs(names: Iterable[str], say: Say) -> dict[str, Path]:
    """Paths of several programs; those of one module are built together: shared packages compile once.

    Raises:
        MissingToolError: No Go to build them with, or a build failed.
    """
    found = {name: path for name in names if (path := find_in_assets(name))}
    for module in MODULES:
        wanted = [name for name in names if name in module.packages and name not in found]
        if wanted:
            found |= _build_tools(module, wanted, say)
    return found


def kubernetes_version() -> str:
    """The version in tests/tools/kubernetes/go.mod, such as `v1.34.4`."""
    return _KUBERNETES.version


def cache_folder() -> Path:
    """Where what can be made again is kept."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "kvtier"


def go() -> str:
    """Path of the Go command."""
    if found := shutil.which("go"):
        return found
    raise MissingToolError(
        "Go is missing, which the cluster tests build Kubernetes with: install Go 1.26 or newer "
        "(https://go.dev/dl), or set KUBEBUILDER_ASSETS to a folder that has the programs"
    )


def find_in_assets(name: str) -> Path | None:
    """The program in KUBEBUILDER_ASSETS, the folder in which other projects' tests look, if it is there."""
    given = Path(os.environ.get("KUBEBUILDER_ASSETS") or "/nonexistent") / name
    return given if given.is_file() else None


def _build_tools(module: Module, names: list[str], say: Say) -> dict[str, Path]:
    with lock(module.cache / ".lock"):  # another test run may be building the same
        if missing := [name for name in names if not (module.cache / name).is_file()]:
            _build(module, missing, say)
    return {name: module.cache / name for name in names}


def _build(module: Module, names: list[str], say: Say) -> None:
    version = module.version
    major, minor = version.removeprefix("v").split(".")[:2]
    stamps = [
        f"-X {variable}={value.format(version=version, major=major, minor=minor)}"
        for variable, value in module.stamp.items()
    ]
    staging = module.cache / ".new"
    shutil.rmtree(staging, ignore_errors=True)
    staging.mkdir()
    packages = [module.packages[name] for name in names]
    command = [
        go(),
        "build",
        "-v",
        "-gcflags=all=-dwarf=false",  # the linker leaves it out anyway, and compilers need a tenth less time
        "-ldflags",
        " ".join(["-s", "-w", *stamps]),
        "-o",
        f"{staging}/",
        *packages,
    ]
    listed = ", ".join(names)
    total = _packages(module, packages, say)
    say(f"building {listed}, once: {total:,} Go packages, for {module.cache}")
    said: list[str] = []
    began = told = time.monotonic()
    # Static: kubelet and kube-proxy need no C library, and a program can be all that an image has.
    environment = {**os.environ, "CGO_ENABLED": "0"}
    with subprocess.Popen(  # noqa: S603 - our own command
        command, cwd=module.folder, env=environment, stderr=subprocess.PIPE, text=True
    ) as build:
        assert build.stderr
        for line in build.stderr:
            said.append(line.rstrip())
            if (now := time.monotonic()) - told > _PROGRESS_S:
                told = now
                left_s = max(0.0, (now - began) * (total / len(said) - 1))
                say(f"building {listed}: {len(said):,} of {total:,} packages, at most {left_s:.0f} s left")
    if build.returncode:
        # a line without a space is a package that was compiled
        wrong = [each for each in said if " " in each] or said
        raise MissingToolError(f"{listed} could not be built: " + " | ".join(wrong[-5:]))
    for name in names:
        (staging / _binary(module.packages[name])).rename(module.cache / name)
    staging.rmdir()
    say(f"built {listed}")


def _packages(module: Module, packages: list[str], say: Say) -> int:
    """How many packages a build has to compile at most; their modules are downloaded for that."""
    say(f"downloading the modules of {', '.join(packages)}")
    listing = subprocess.run(  # noqa: S603 - our own command
        [go(), "list", "-deps", *packages], cwd=module.folder, capture_output=True, text=True, check=False
    )
    if listing.returncode:
        raise MissingToolError(f"{', '.join(packages)}: " + " | ".join(listing.stderr.splitlines()[-5:]))
    return len(listing.stdout.splitlines())


def _binary(package: str) -> str:
    """What `go build` calls a package's program: the last part of its path that is not a major version."""
    *_, before, last = package.split("/")
    return before if re.fullmatch(r"v\d+", last) else last


if __name__ == "__main__":
    try:
        programs(sys.argv[1:] or [name for module in MODULES for name in module.packages], print)
    except MissingToolError as error:
        sys.exit(str(error))
