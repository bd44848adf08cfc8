"""vLLM's packages and nothing else, as its image has them: a folder of links to this environment's.

vLLM itself is the newer one, whatever the image is called, unless the installed one is asked for.
"""

import os
import shutil
import sysconfig
from collections.abc import Iterable, Iterator
from hashlib import sha256
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

from packaging.requirements import Requirement
from tests.cluster.harness.programs.tools import Say, cache_folder
from tests.shared.newer_vllm import INSTALLED_VLLM, newer_vllm, newer_vllm_says


def vllm_packages(say: Say, *, older: bool = False) -> Path:
    """A folder of Python's path with what vLLM requires, directly or not, and what is installed of that here.

    It has links to this environment's files, their bytecode included: 5 GB take a second and no room.
    """
    site = Path(sysconfig.get_path("purelib"))
    vllm = distribution(INSTALLED_VLLM) if older else newer_vllm_says(say)
    base = site if older else newer_vllm(say)
    wanted = sorted(closure(vllm), key=lambda each: each.name)
    names = (f"{each.name}=={each.version}" for each in wanted)
    identity = sha256("\0".join([str(site), vllm.version if older else base.name, *names]).encode())
    target = cache_folder() / f"vllm-packages-{identity.hexdigest()[:12]}"
    if target.exists():
        return target
    building = target.with_name(f".{target.name}-{os.getpid()}")
    own = _files(vllm, site) if older else (file for file in base.rglob("*") if file.is_file())
    _link_all(own, base, building)
    for each in wanted:
        _link_all(_files(each, site), site, building)
    try:
        building.rename(target)
    except OSError:  # another run was as quick
        shutil.rmtree(building)
    return target


def closure(of: Distribution) -> list[Distribution]:
    """Those of a distribution's requirements, and of theirs, that are installed."""
    found: dict[str, Distribution] = {}
    seen = set[tuple[str, str]]()
    ahead = _requirements(of, "")
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
            ahead += _requirements(each, extra)
    return list(found.values())


def _requirements(package: Distribution, extra: str) -> list[Requirement]:
    required = map(Requirement, package.requires or ())
    return [need for need in required if not need.marker or need.marker.evaluate({"extra": extra})]


def _files(package: Distribution, site: Path) -> Iterator[Path]:
    """What a package has in `site`, and the bytecode of it."""
    for file in package.files or ():
        path = Path(str(package.locate_file(file))).resolve()
        if not path.is_relative_to(site) or not path.is_file():
            continue
        yield path
        if path.suffix == ".py":
            yield from (path.parent / "__pycache__").glob(f"{path.stem}.*.pyc")


def _link_all(files: Iterable[Path], base: Path, target: Path) -> None:
    for file in files:
        link = target / file.relative_to(base)
        link.parent.mkdir(parents=True, exist_ok=True)
        link.unlink(missing_ok=True)  # a file that two packages have
        _link(file, link)


def _link(file: Path, link: Path) -> None:
    try:
        link.hardlink_to(file)
    except OSError:  # another file system
        shutil.copy2(file, link)
