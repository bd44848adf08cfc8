"""Addresses of a node, its pods and Services, and the link between this machine and the node."""

import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.cluster.harness.control_plane.apiserver import Addresses

# 10.208.0.0/12, of which each node has a /16.
_FIRST_OCTET: Final = 208
_NETWORKS: Final = 16
NODE_LINK: Final = "eth0"


@dataclass(frozen=True, slots=True)
class Network:
    """One of the networks that nodes here can have; several nodes run at a time."""

    index: int

    @property
    def link(self) -> str:
        """The link's end on this machine."""
        return f"kvtier{self.index}"

    @property
    def machine_address(self) -> str:
        """This machine, seen from the node and its pods: where they reach the API server."""
        return f"{self._prefix}.255.1"

    @property
    def node_address(self) -> str:
        """The node."""
        return f"{self._prefix}.255.2"

    @property
    def pods_cidr(self) -> str:
        """Range of the pods."""
        return f"{self._prefix}.128.0/24"

    @property
    def services_cidr(self) -> str:
        """Range of the Services."""
        return f"{self._prefix}.0.0/17"

    @property
    def api_server(self) -> Addresses:
        """What the API server has to know of it."""
        return Addresses(self.machine_address, self.services_cidr, f"{self._prefix}.0.1")

    @property
    def _prefix(self) -> str:
        return f"10.{_FIRST_OCTET + self.index}"


def free_network() -> Network:
    """A network that no node on this machine has.

    Raises:
        RuntimeError: All are taken.
    """
    taken = {path.name for path in Path("/sys/class/net").iterdir()}
    for index in range(_NETWORKS):
        network = Network(index)
        if network.link not in taken:
            return network
    raise RuntimeError(f"all {_NETWORKS} networks for nodes are taken: ip link show type veth")


def connect(network: Network, node_pid: int) -> None:
    """Makes the link into the network namespace of a process, and routes to its pods and Services.

    The link and the routes go when that namespace does.
    """
    _ip("link", "add", network.link, "type", "veth", "peer", "name", NODE_LINK, "netns", str(node_pid))
    _ip("address", "add", f"{network.machine_address}/30", "dev", network.link)
    _ip("link", "set", network.link, "up")
    inside = ("nsenter", "--target", str(node_pid), "--net", "--")
    _ip("address", "add", f"{network.node_address}/30", "dev", NODE_LINK, inside=inside)
    _ip("link", "set", NODE_LINK, "up", inside=inside)
    _ip("link", "set", "lo", "up", inside=inside)
    _ip("route", "add", "default", "via", network.machine_address, inside=inside)
    for each in (network.pods_cidr, network.services_cidr):
        _ip("route", "add", each, "via", network.node_address)


def _ip(*arguments: str, inside: tuple[str, ...] = ()) -> None:
    command = [*inside, "ip", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 - our own command
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)}: {done.stderr.strip()}")
