"""LMCache's settings, written once and rendered as environment and as configuration file.

Source: lmcache 0.5.6, lmcache/v1/config.py (`_CONFIG_DEFINITIONS`): the file is read first and
LMCACHE_<KEY> overrides it, so both forms must say the same. A size with a unit (`4Gi`) is warned about
and dropped, an unknown key is ignored: only plain numbers and known keys may leave this file.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import yaml

from kvtier_operator.planning.backends.parts.share import gib, gib_text
from kvtier_operator.planning.base.container_parts import ConfigFile

CONFIG_PATH: Final = "/etc/kvtier/lmcache.yaml"
ENV_PREFIX: Final = "LMCACHE_"
RESERVED_ENV: Final = {
    "LMCACHE_CONFIG_FILE": "kvtier writes that file",
    "LMCACHE_LOCAL_CPU": "spec.tiers.cpu decides it",
    "LMCACHE_MAX_LOCAL_CPU_SIZE": "spec.tiers.cpu.capacity makes it",
    "LMCACHE_LOCAL_DISK": "spec.tiers.disk.volume makes it",
    "LMCACHE_MAX_LOCAL_DISK_SIZE": "spec.tiers.disk.capacity makes it",
    "LMCACHE_LOCAL_CPU_USE_HUGEPAGES": "spec.tiers.cpu.hugepages makes it",
    "LMCACHE_CHUNK_SIZE": "the tiers' tokens are counted in these chunks",
}
CHUNK_TOKENS: Final = 256
"""LMCache's default `chunk_size`."""


@dataclass(frozen=True, slots=True)
class LMCacheSettings:
    """What one rank's LMCache is given.

    Attributes:
        cpu_bytes: CPU buffer of one rank, whole MiB. The disk tier needs it too: blocks pass through it.
        hugepages: Take the buffer from explicit 2 MiB pages.
        disk_paths: Absolute folders, one for each rank of the pod; empty without a disk tier.
        disk_bytes: Disk tier of one rank, whole MiB.
        direct_io: Bypass the page cache.
    """

    cpu_bytes: int
    hugepages: bool = False
    disk_paths: tuple[str, ...] = ()
    disk_bytes: int = 0
    direct_io: bool = False

    def values(self) -> Mapping[str, Any]:
        """Settings by LMCache's names, with sizes in GiB."""
        values: dict[str, Any] = {
            "chunk_size": CHUNK_TOKENS,
            "local_cpu": True,
            "max_local_cpu_size": gib(self.cpu_bytes),
        }
        if self.hugepages:
            values["local_cpu_use_hugepages"] = True
        if self.disk_paths:
            values["local_disk"] = ",".join(f"file://{path}" for path in self.disk_paths)
            values["max_local_disk_size"] = gib(self.disk_bytes)
            values["extra_config"] = {"use_odirect": self.direct_io}
        return values

    def env(self) -> Mapping[str, str]:
        """The settings as LMCACHE_<KEY> variables."""
        sizes = {"max_local_cpu_size": self.cpu_bytes, "max_local_disk_size": self.disk_bytes}
        return {
            f"LMCACHE_{key.upper()}": gib_text(sizes[key]) if key in sizes else _text(value)
            for key, value in self.values().items()
        }

    def file(self) -> ConfigFile:
        """The settings as the file that LMCACHE_CONFIG_FILE names."""
        return ConfigFile(CONFIG_PATH, yaml.safe_dump(dict(self.values()), sort_keys=False))


def _text(value: Any) -> str:  # noqa: ANN401 - a setting's value, of whichever type LMCache gives it
    return json.dumps(value) if isinstance(value, dict) else str(value)
