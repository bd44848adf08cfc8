"""The pods' network: each pod has a link of its own to the node, which routes."""

import json
from pathlib import Path
from typing import Final

from tests.cluster.harness.node.network.network import Network

PLUGINS: Final = Path("/usr/lib/cni")  # where Debian has containernetworking-plugins


def write_network(folder: Path, network: Network) -> Path:
    """Writes the network's configuration into a new folder and returns that."""
    folder.mkdir()
    plugin = {
        # Routed links need no bridge, and so none of a bridge's traps: packets between pods pass iptables.
        "type": "ptp",
        "ipMasq": False,
        "ipam": {
            "type": "host-local",
            "dataDir": "/run/kvtier/addresses",
            "ranges": [[{"subnet": network.pods_cidr}]],
            "routes": [{"dst": "0.0.0.0/0"}],
        },
    }
    content = {"cniVersion": "0.4.0", "name": "kvtier", "plugins": [plugin]}
    (folder / "10-kvtier.conflist").write_text(json.dumps(content))
    return folder
