"""The image that engines' pods copy from: small, and for each machine that vLLM runs on."""

import json
import struct
import tarfile
from collections.abc import Mapping
from pathlib import Path

import pytest
from tests.cluster.harness.images.kvtier import connector_archive
from tests.cluster.harness.programs.tools import Say
from tests.cluster.harness.providers.fixtures import need
from tests.cluster.harness.providers.provider import Ability, Provider

from kvtier_connector.payload import COPY_COMMAND, IMAGE_PAYLOAD_PATH
from kvtier_release.release import IMAGES

MOST_BYTES = 30 << 20
# e_machine of an ELF file's header: elf(5).
MACHINES = {"linux/amd64": 62, "linux/arm64": 183}


def files_of(archive: Path) -> dict[str, bytes]:
    """An image's files by absolute path, from a docker archive."""
    with tarfile.open(archive) as opened:
        [manifest] = json.loads(read(opened, "manifest.json"))
        files = dict[str, bytes]()
        for name in manifest["Layers"]:
            with tarfile.open(fileobj=opened.extractfile(name)) as layer:
                files |= {f"/{entry.name}": read(layer, entry.name) for entry in layer if entry.isfile()}
    return files


def read(opened: tarfile.TarFile, name: str) -> bytes:
    content = opened.extractfile(name)
    assert content
    return content.read()


@pytest.fixture(scope="module", params=IMAGES["connector"].platforms)
def image(request: pytest.FixtureRequest, provider: Provider, say: Say) -> tuple[int, Mapping[str, bytes]]:
    """What ELF calls the machine, and the image's files."""
    need(provider, Ability.NODE)  # who has none has no buildah
    platform: str = request.param
    return MACHINES[platform], files_of(connector_archive(say, platform))


def test_it_is_small(image: tuple[int, Mapping[str, bytes]]) -> None:
    assert sum(map(len, image[1].values())) < MOST_BYTES


def test_all_that_is_compiled_is_for_the_machine(image: tuple[int, Mapping[str, bytes]]) -> None:
    machine, files = image
    compiled = {path: content for path, content in files.items() if content.startswith(b"\x7fELF")}
    assert {struct.unpack_from("<H", content, 18)[0] for content in compiled.values()} == {machine}
    assert COPY_COMMAND[0] in compiled
    assert [path for path in compiled if path.startswith(f"{IMAGE_PAYLOAD_PATH}/lacking/xxhash/")]
