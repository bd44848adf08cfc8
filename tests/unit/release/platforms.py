"""An image for several platforms, as builders write it."""

import io
import json
import tarfile
from collections.abc import Mapping

from kvtier_release.oci import Content, blob, tar

_INDEX = "application/vnd.oci.image.index.v1+json"


def image_of_platforms(images: Mapping[str, bytes]) -> bytes:
    """An OCI archive with one image, from archives with that of each architecture."""
    entries, files = [], dict[str, bytes]()
    for architecture, archive in images.items():
        with tarfile.open(fileobj=io.BytesIO(archive)) as opened:
            files |= {name: opened.extractfile(name).read() for name in opened.getnames()}  # type: ignore[union-attr] # of files alone
        [manifest] = json.loads(files["index.json"])["manifests"]
        entries.append(manifest | {"platform": {"architecture": architecture, "os": "linux"}})
    about = {"schemaVersion": 2, "mediaType": _INDEX, "manifests": entries}
    index = Content(_INDEX, json.dumps(about).encode())
    top = json.dumps({"schemaVersion": 2, "manifests": [index.descriptor()]}).encode()
    return tar(files | {blob(index.digest): index.bytes, "index.json": top}, 0)
