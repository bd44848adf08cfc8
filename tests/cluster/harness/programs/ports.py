"""Free TCP ports on loopback."""

from kvtier_operator.runtime.process import ports


def free_ports(count: int) -> list[int]:
    """Ports for programs that are started later; nobody else gets them meanwhile."""
    return list(ports.free_ports(count, ports.LOOPBACK))
