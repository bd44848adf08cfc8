"""`python -m tests.cases.releases.write`: keeps what an upgrade from this version is compared with."""

import json
import shutil
import sys
from typing import Final

import yaml
from tests.cases.releases.kept import (
    CONTENTS,
    HERE,
    INSTALL,
    OBJECTS,
    RESOURCES,
    ROOT,
    Document,
    KeptRelease,
)
from tests.cases.releases.present import NAMESPACE, contents, present_install, present_objects

from kvtier_common.version import KVTIER_VERSION
from kvtier_operator.planning.objects.manifest import to_yaml

_INPUTS: Final = ROOT / "tests" / "unit" / "operator" / "golden" / "input"
_NAMES: Final = (
    "minimal",
    "kvtier-disk",
    "kvtier-builtin-events",
    "native-gaie",
    "lmcache-llm-d",
    "lmcache-mp-builtin",
    "cpu-device",
    "gateway-standalone-builtin",
    "pod-templates",
)
"""Each backend, device and picker flavour, and what has pods or objects of its own."""


def main() -> None:
    """Writes the folder of this version, in place of the release before."""
    release = KeptRelease(HERE / KVTIER_VERSION)
    if release.folder.exists() and release.is_out:
        sys.exit(f"{release.folder} is a release that is out, and stays: raise the version first")
    for path in HERE.iterdir():
        if path.is_dir() and path.name[0].isdigit():
            shutil.rmtree(path)
    release.folder.mkdir()
    resources = [_resource(name) for name in _NAMES]
    files = {
        INSTALL: present_install(),
        RESOURCES: to_yaml(resources),
        OBJECTS: to_yaml(present_objects(resources).values()),
        CONTENTS: json.dumps(contents(), indent=2) + "\n",
    }
    for name, text in files.items():
        (release.folder / name).write_text(text, encoding="utf-8")
    sys.stdout.write(f"{release.folder}: {', '.join(files)}\n")


def _resource(name: str) -> Document:
    document: Document = yaml.safe_load((_INPUTS / f"{name}.yaml").read_text(encoding="utf-8"))
    return document | {"metadata": {"name": name, "namespace": NAMESPACE}}


if __name__ == "__main__":
    main()
