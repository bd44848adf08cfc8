"""Whether this machine can run a node, and if not, why."""

import os
import shutil
import subprocess

from tests.cluster.harness.node.machine.packages import PACKAGES
from tests.shared.debian import missing_packages


def why_no_node() -> str:
    """The first thing that keeps this machine from running a node; empty if nothing does."""
    if os.geteuid() != 0:
        return "a node needs root: its kubelet makes namespaces and mounts"
    missing = missing_packages(PACKAGES)
    if missing and not shutil.which("apt-get"):
        return f"a node needs {', '.join(missing)}, and there is no apt-get to install them with"
    if "util-linux" not in missing:
        own = ["unshare", "--net", "--mount", "--pid", "--fork", "true"]
        tried = subprocess.run(own, capture_output=True, text=True, check=False)  # noqa: S603 - our own command
        if tried.returncode:
            return f"a node needs namespaces of its own, which root may not make here: {tried.stderr.strip()}"
    return ""
