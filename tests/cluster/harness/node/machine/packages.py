"""Debian's packages of what a node and its images are made with."""

from collections.abc import Mapping
from typing import Final

PACKAGES: Final[Mapping[str, str]] = {
    "containerd": "containerd",
    "runc": "runc",
    "containernetworking-plugins": "/usr/lib/cni/ptp",
    "iptables": "iptables",
    "conntrack": "conntrack",
    "iproute2": "ip",
    "util-linux": "nsenter",
    "buildah": "buildah",
    "debootstrap": "debootstrap",
}
"""What shows that a package is there, by its name: a command, or a file."""
