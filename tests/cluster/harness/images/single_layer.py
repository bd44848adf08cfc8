"""An image of one static program: a docker archive, written without any builder."""

import hashlib
import io
import json
import tarfile
from pathlib import Path
from typing import Final

_MODE: Final = 0o755


def write_image(target: Path, reference: str, program: Path) -> Path:
    """Writes an archive with an image whose only file is a program, which it runs; returns the archive.

    The format is that of `docker save` (moby, image/spec/v1.2): manifest.json names configuration and layers.
    """
    layer = _tar({program.name: program.read_bytes()})
    configuration = json.dumps(
        {
            "architecture": "amd64",
            "os": "linux",
            "config": {"Entrypoint": [f"/{program.name}"], "User": "65532"},
            "rootfs": {"type": "layers", "diff_ids": [f"sha256:{hashlib.sha256(layer).hexdigest()}"]},
        }
    ).encode()
    name = f"{hashlib.sha256(configuration).hexdigest()}.json"
    manifest = [{"Config": name, "RepoTags": [reference], "Layers": ["layer.tar"]}]
    content = {"manifest.json": json.dumps(manifest).encode(), name: configuration, "layer.tar": layer}
    target.write_bytes(_tar(content))
    return target


def _tar(files: dict[str, bytes]) -> bytes:
    sink = io.BytesIO()
    with tarfile.open(fileobj=sink, mode="w") as archive:
        for name, content in files.items():
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode = len(content), _MODE
            archive.addfile(entry, io.BytesIO(content))
    return sink.getvalue()
