"""Images from Containerfiles, without an engine: buildah with a store of its own in the cache."""

import os
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.cluster.harness.programs.tools import MissingToolError, Say, cache_folder

# A build trusts the authorities that this machine trusts, as far as they are there.
_AUTHORITIES: Final = ("/etc/ssl/certs", "/usr/share/ca-certificates", "/usr/local/share/ca-certificates")
_LAST_LINES: Final = 8


@dataclass(frozen=True, slots=True)
class Containerfile:
    """What an image is built from.

    Attributes:
        file: The Containerfile.
        context: The folder that it copies from.
        arguments: Build arguments, such as BASE_IMAGE.
        platform: What the image is for, such as linux/arm64; empty for this machine.
    """

    file: Path
    context: Path
    arguments: Mapping[str, str]
    platform: str = ""


def build(image: str, source: Containerfile, say: Say) -> None:
    """Builds an image into the store.

    Raises:
        MissingToolError: The build failed; the message has its last lines.
    """
    say(f"building the image {image} from {source.file}")
    mounts = [f"--volume={path}:{path}:ro" for path in _AUTHORITIES if Path(path).is_dir()]
    arguments = [f"--build-arg={name}={value}" for name, value in source.arguments.items()]
    _buildah(
        "bud",
        # What a machine without an engine can: no namespaces for the build, the machine's network.
        *("--isolation", "chroot", "--network", "host", "--pull-never"),
        *(*mounts, *arguments),
        *(("--platform", source.platform) if source.platform else ()),
        *("--file", str(source.file), "--tag", image, str(source.context)),
    )


def is_built(image: str) -> bool:
    """Whether the store has an image."""
    return not _run("inspect", "--type", "image", image).returncode


def export(image: str, archive: Path) -> Path:
    """Writes an image of the store into an archive that containerd imports; returns that."""
    archive.unlink(missing_ok=True)
    _buildah("push", "--quiet", image, f"docker-archive:{archive}:{image}")
    return archive


def as_oci(archive: Path, target: Path, say: Say) -> None:
    """Writes the image of an archive that `export` made as an OCI archive."""
    say(f"writing {target.name} as an OCI archive")
    image = _buildah("pull", "--quiet", f"docker-archive:{archive}").strip()
    _buildah("push", "--quiet", image, f"oci-archive:{target}")


def _buildah(*arguments: str) -> str:
    done = _run(*arguments)
    if done.returncode:
        last = " | ".join((done.stdout + done.stderr).strip().splitlines()[-_LAST_LINES:])
        raise MissingToolError(f"buildah {arguments[0]} failed: {last}")
    return done.stdout


def _run(*arguments: str) -> subprocess.CompletedProcess[str]:
    store = cache_folder() / "images"
    # Variables of this machine's pip and Python mean nothing in an image.
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith(("PIP_", "PYTHON"))
    }
    return subprocess.run(  # noqa: S603 - our own command
        [  # noqa: S607 - the machine's own
            "buildah",
            f"--root={store / 'storage'}",
            f"--runroot={store / 'run'}",
            "--storage-driver=overlay",
            *arguments,
        ],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
