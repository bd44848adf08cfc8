"""Free TCP ports on loopback."""

from kvtier_operator.runtime import process


def free_ports(count: int) -> list[int]:
    """Ports for programs that are started later; nobody else gets them meanwhile."""
    return list(process.free_ports(count, process.LOOPBACK))
