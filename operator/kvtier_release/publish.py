"""`make publish`: pushes a release's images and chart to a registry, each by its digest, and signs them."""

import os
from collections.abc import Callable, Container
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from kvtier_common.version import KVTIER_VERSION
from kvtier_release.commands import ReleaseError, program, run, timestamp
from kvtier_release.make import Pushed, pushed_archives, sbom_of, write_for_registry
from kvtier_release.oci import image_digest
from kvtier_release.release import Release

_SBOM: Final = "application/vnd.cyclonedx+json"
_NOT_FOUND: Final = "not found"
_WITHOUT_TLS: Final = "localhost:"
"""Where oras goes without TLS unasked, and cosign does not."""
_PASSWORD: Final = "COSIGN_PASSWORD"  # noqa: S105 - the variable's name
_WRONG_PASSWORD: Final = "decryption failed"  # noqa: S105 - what cosign says
_PUBLIC_SERVICES: Final = "sigstore.dev"
_WITHOUT_SERVICES: Final = "--cosign=--use-signing-config=false --cosign=--tlog-upload=false"
Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Signing:
    """How what is published is signed."""

    key: str  # as `cosign sign --key` takes it
    arguments: tuple[str, ...] = ()  # further ones of `cosign sign`


def publish(root: Path, dist: Path, registry: str, signing: Signing | None, say: Say) -> None:
    """Pushes what `make_release` made; a version that is there already has to be the same.

    Where the release is for another registry (`HOST[:PORT][/PATH]`), what says so is written anew. Where the
    key cannot be had, nothing is pushed. `say` takes a line for each reference that was.
    """
    release = Release.read(dist)
    if release.version != KVTIER_VERSION:
        raise ReleaseError(
            f"{dist} has release {release.version}, and this is {KVTIER_VERSION}: run make release"
        )
    if release.registry != registry:
        release = replace(release, registry=registry)
        write_for_registry(root, dist, release)
    archives = pushed_archives(dist, release)
    # before the first push: what was published of half a release stays
    if signing:
        _try_key(signing.key)
    for archive in archives:
        _check(release, archive)
    _check_promised(
        release, {f"{archive.repository}@{image_digest(archive.archive)}" for archive in archives}
    )
    for archive in archives:
        _push(release, dist, archive)
        if signing:
            _sign(f"{registry}/{archive.repository}@{image_digest(archive.archive)}", signing)
        say(f"{registry}/{archive.repository}:{archive.tag}@{image_digest(archive.archive)}")


def _check(release: Release, pushed: Pushed) -> None:
    """Whether it is what the release names, and the registry has no other under its tag."""
    digest = image_digest(pushed.archive)
    start = f"{pushed.repository}@"
    promised = {path.removeprefix(start) for path in release.images.values() if path.startswith(start)}
    if promised and digest not in promised:
        raise ReleaseError(f"{pushed.archive} is not the image that the release names: run make release")
    target = f"{release.registry}/{pushed.repository}:{pushed.tag}"
    if pushed.is_final and (there := _digest_there(target)) not in {digest, ""}:
        raise ReleaseError(f"{target} is {there} already, and what is published stays: raise the version")


def _check_promised(release: Release, pushed: Container[str]) -> None:
    """Whether there will be each image that the release names by its digest."""
    for path in sorted({*release.images.values()}):
        if "@" in path and path not in pushed and not _digest_there(f"{release.registry}/{path}"):
            raise ReleaseError(
                f"the release names {path}, which is neither in it nor at {release.registry}: copy it there "
                "(oras cp), or run make release with its archive"
            )


def _push(release: Release, dist: Path, pushed: Pushed) -> None:
    repository, digest = f"{release.registry}/{pushed.repository}", image_digest(pushed.archive)
    run("oras", "cp", "--from-oci-layout", f"{pushed.archive}@{digest}", f"{repository}:{pushed.tag}")
    if (sbom := sbom_of(pushed.archive.stem, dist)).is_file():
        created = f"org.opencontainers.image.created={timestamp(release.created_s)}"
        options = ("--artifact-type", _SBOM, "--annotation", created)
        run("oras", "attach", *options, f"{repository}@{digest}", f"{sbom.name}:{_SBOM}", cwd=sbom.parent)


def _digest_there(target: str) -> str:
    """What a registry has under a tag; empty for nothing."""
    try:
        return run("oras", "resolve", target).strip()
    except ReleaseError as error:
        if _NOT_FOUND in str(error):
            return ""
        raise


def _try_key(key: str) -> None:
    """Reads the key as signing will."""
    program("cosign")
    try:
        _cosign("public-key", "--key", key)
    except ReleaseError as error:
        password = f": set {_PASSWORD} to the key's password" if _WRONG_PASSWORD in str(error) else ""
        raise ReleaseError(f"--key {key}: {error}{password}") from error


def _sign(reference: str, signing: Signing) -> None:
    plain = ("--allow-http-registry",) if reference.startswith(_WITHOUT_TLS) else ()
    try:
        _cosign("sign", "--yes", "--key", signing.key, *plain, *signing.arguments, reference)
    except ReleaseError as error:
        if _PUBLIC_SERVICES not in str(error):
            raise
        raise ReleaseError(f"{error}; to sign without the public services: {_WITHOUT_SERVICES}") from error


def _cosign(*arguments: str) -> None:
    # without the variable it asks a terminal, which it has not got
    run("cosign", *arguments, env={_PASSWORD: os.environ.get(_PASSWORD, "")})
