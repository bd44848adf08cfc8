"""Which vLLM the connector runs in: vLLM's offloading interfaces change with nearly every minor."""

from typing import Final

TESTED_RELEASES: Final = {"0.32": "0.32.0", "0.33": "0.33.0"}
"""For each minor that is accepted, the last release that the tests have run."""

SERVE_ARGUMENTS: Final = ("vllm.entrypoints.common.cli_args", "vllm.entrypoints.launchers.cli_args")
"""Modules that read the arguments of `vllm serve`, of the newest minor first."""


def minor_of(version: str) -> str:
    """Return a version's minor: of `0.33.0+cpu`, `0.33`."""
    return ".".join(version.split(".")[:2])
