"""What the distribution needs, with each of its extras but the one that is an engine."""

import tomllib
from collections.abc import Iterable, Iterator
from importlib.metadata import Distribution, PackageNotFoundError
from pathlib import Path
from typing import Final

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from kvtier_release.errors import ReleaseError
from kvtier_release.sbom.document import Package, document

EXTRAS: Final = ("operator", "connector", "scorer")
"""`engine-cpu` brings vLLM, whose own packages are vLLM's to say."""
_LOCK: Final = "requirements-light.lock"


def distribution_sbom(root: Path, created_s: int) -> str:
    """The document, of the locked versions as they are installed beside this program.

    Raises:
        ReleaseError: The environment is not the lock file's.
    """
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    locked = _locked((root / _LOCK).read_text(encoding="utf-8"))
    required = _closure([Requirement(each) for each in project["dependencies"]])
    of_extras = [Requirement(each) for extra in EXTRAS for each in project["optional-dependencies"][extra]]
    needs = {**_closure(of_extras), **required}
    packages = {name: _package(name, locked, optional=name not in required) for name in needs}
    graph = {packages[name]: [packages[each] for each in needed] for name, needed in needs.items()}
    return document("kvtier", packages.values(), created_s, graph)


def _locked(text: str) -> dict[str, str]:
    """The versions of a lock file that are for this machine and its Python."""
    lines = [line.removesuffix("\\") for line in text.splitlines() if line and line[0] not in " #"]
    here = [each for each in map(Requirement, lines) if _applies(each, "")]
    return {canonicalize_name(each.name): str(each.specifier).removeprefix("==") for each in here}


def _closure(requirements: Iterable[Requirement]) -> dict[str, tuple[str, ...]]:
    """What is needed here, by name, with the names of what each needs in turn."""
    found: dict[str, set[str]] = {}
    seen: set[tuple[str, str]] = set()
    waiting = [each for each in requirements if _applies(each, "")]
    while waiting:
        requirement = waiting.pop()
        name = canonicalize_name(requirement.name)
        for extra in ("", *requirement.extras):
            if (name, extra) in seen:
                continue
            seen.add((name, extra))
            needed = list(_needed(name, extra))
            found.setdefault(name, set()).update(canonicalize_name(each.name) for each in needed)
            waiting += needed
    return {name: tuple(sorted(needed)) for name, needed in sorted(found.items())}


def _needed(name: str, extra: str) -> Iterator[Requirement]:
    for text in _installed(name).requires or ():
        requirement = Requirement(text)
        if _applies(requirement, extra):
            yield requirement


def _applies(requirement: Requirement, extra: str) -> bool:
    return requirement.marker is None or requirement.marker.evaluate({"extra": extra})


def _package(name: str, locked: dict[str, str], *, optional: bool) -> Package:
    installed = _installed(name)
    if installed.version != locked.get(name):
        raise ReleaseError(
            f"{name} is {installed.version} here and {locked.get(name, 'missing')} in {_LOCK}: "
            "run make setup-light"
        )
    return Package("pypi", "", name, installed.version, license_of(installed), optional)


def _installed(name: str) -> Distribution:
    try:
        return Distribution.from_name(name)
    except PackageNotFoundError as error:
        raise ReleaseError(f"{name} is not installed here: run make setup-light") from error


def license_of(distribution: Distribution) -> str:
    """What a package says its licence is, the newer of its ways to say so first; empty for none."""
    about = distribution.metadata
    if "License-Expression" in about:
        return about["License-Expression"]
    named = [each for each in about.get_all("Classifier") or () if each.startswith("License :: ")]
    if named:
        return str(named[0]).rpartition(" :: ")[2]
    return about["License"] if "License" in about else ""  # noqa: SIM401 - no get before Python 3.12
