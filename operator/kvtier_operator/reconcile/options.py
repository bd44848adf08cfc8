"""What the operator is told when it starts."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Options:
    """How it runs.

    Attributes:
        namespaces: What it serves; none for the whole cluster.
        repository: Where this cluster gets kvtier's own image from; None for the published one.
    """

    namespaces: tuple[str, ...] = ()
    repository: str | None = None
