"""Archives whose bytes follow from their content alone: of files, and of OCI (image-spec v1.1)."""

import gzip
import hashlib
import io
import json
import re
import tarfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, Final

from kvtier_common.one_line import one_line
from kvtier_release.commands import ReleaseError, timestamp

_MODE: Final = 0o644
_MANIFEST: Final = "application/vnd.oci.image.manifest.v1+json"
_CONFIG: Final = "application/vnd.oci.image.config.v1+json"
_LAYER: Final = "application/vnd.oci.image.layer.v1.tar"
_NO_PLATFORM: Final = "unknown"
"""What docker writes for an attestation."""
_DIGEST: Final = re.compile("sha256:[0-9a-f]{64}")
_MOST_SAID: Final = 200


def tar(files: Mapping[str, bytes], seconds: int) -> bytes:
    """A tar archive."""
    sink = io.BytesIO()
    with tarfile.open(fileobj=sink, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for name, content in sorted(files.items()):
            _add_file(archive, name, io.BytesIO(content), len(content), seconds)
    return sink.getvalue()


def tar_gz(files: Mapping[str, bytes], seconds: int) -> bytes:
    """The same, compressed."""
    return gzip.compress(tar(files, seconds), mtime=seconds)


def copy_tar(source: Path, target: Path, seconds: int) -> None:
    """Copies the files of a tar archive that others made; they may have gigabytes."""
    with tarfile.open(source) as opened, tarfile.open(target, "w", format=tarfile.PAX_FORMAT) as archive:
        for member in sorted(opened.getmembers(), key=lambda member: member.name):
            if content := opened.extractfile(member):
                _add_file(archive, member.name, content, member.size, seconds)


def _add_file(archive: tarfile.TarFile, name: str, content: IO[bytes], size_bytes: int, seconds: int) -> None:
    entry = tarfile.TarInfo(name)
    entry.size, entry.mode, entry.mtime = size_bytes, _MODE, seconds
    archive.addfile(entry, content)


@dataclass(frozen=True, slots=True)
class Content:
    """Bytes and what they are."""

    media_type: str
    bytes: bytes
    annotations: Mapping[str, str] = field(default_factory=dict)

    @property
    def digest(self) -> str:
        """`sha256:...`."""
        return f"sha256:{hashlib.sha256(self.bytes).hexdigest()}"

    def descriptor(self) -> dict[str, Any]:
        """How a manifest names them."""
        named = {"mediaType": self.media_type, "digest": self.digest, "size": len(self.bytes)}
        return named | ({"annotations": dict(self.annotations)} if self.annotations else {})


def image_digest(archive: Path) -> str:
    """The digest of an archive's one image, `sha256:...`."""
    try:
        with tarfile.open(archive) as opened:
            digests = [str(manifest["digest"]) for manifest in read_json(opened, "index.json")["manifests"]]
    except (tarfile.TarError, KeyError, TypeError, ValueError, OSError) as error:
        raise ReleaseError(f"{archive} is no OCI archive: {one_line(str(error), _MOST_SAID)}") from error
    if len(digests) != 1:
        raise ReleaseError(f"{archive} has {len(digests)} images: an archive is to have one")
    if not _DIGEST.fullmatch(digests[0]):
        raise ReleaseError(f"{archive} is no OCI archive: its image has no digest of SHA-256")
    return digests[0]


def image_manifests(opened: tarfile.TarFile) -> list[dict[str, Any]]:
    """The manifests of an archive's one image, one for each platform that it is for.

    A KeyError where something is not there; a ValueError where one of them is no image.
    """
    [image] = read_json(opened, "index.json")["manifests"]
    manifest = read_json(opened, blob(image["digest"]))
    if "manifests" not in manifest:
        return [manifest]
    if any(entry.get("platform", {}).get("architecture") == _NO_PLATFORM for entry in manifest["manifests"]):
        raise ValueError("it has what attests an image: build with docker --provenance=false")
    return [read_json(opened, blob(entry["digest"])) for entry in manifest["manifests"]]


def read_json(opened: tarfile.TarFile, name: str) -> dict[str, Any]:
    """A file of an archive, parsed; raises as `member`."""
    parsed: dict[str, Any] = json.load(member(opened, name))
    return parsed


def member(opened: tarfile.TarFile, name: str) -> IO[bytes]:
    """A file of an archive; a KeyError where it is not there."""
    if (content := opened.extractfile(name)) is None:
        raise KeyError(name)
    return content


def blob(digest: str) -> str:
    """Where an archive has what has a digest."""
    return f"blobs/{digest.replace(':', '/')}"


def image_of_files(files: Mapping[str, bytes], labels: Mapping[str, str], tag: str, seconds: int) -> bytes:
    """An archive with an image that has these files and runs nothing, such as an OLM bundle."""
    layer = Content(_LAYER, tar(files, seconds))
    about = {
        "created": timestamp(seconds),
        "architecture": "amd64",
        "os": "linux",
        "config": {"Labels": dict(labels)},
        "rootfs": {"type": "layers", "diff_ids": [layer.digest]},
    }
    return artifact(Content(_CONFIG, as_json(about)), layer, tag, seconds)


def artifact(config: Content, layer: Content, tag: str, seconds: int) -> bytes:
    """An archive with one artifact of one layer; its bytes follow from what is given."""
    document = {
        "schemaVersion": 2,
        "mediaType": _MANIFEST,
        "config": config.descriptor(),
        "layers": [layer.descriptor()],
        "annotations": {
            "org.opencontainers.image.created": timestamp(seconds),
            "org.opencontainers.image.version": tag,
        },
    }
    manifest = Content(_MANIFEST, as_json(document), {"org.opencontainers.image.ref.name": tag})
    layout = {
        "oci-layout": as_json({"imageLayoutVersion": "1.0.0"}),
        "index.json": as_json({"schemaVersion": 2, "manifests": [manifest.descriptor()]}),
    }
    return tar(layout | {blob(part.digest): part.bytes for part in (config, layer, manifest)}, seconds)


def as_json(value: object) -> bytes:
    """The same bytes for the same value."""
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()
