"""What the operator is told when it starts."""

from dataclasses import dataclass, field

from kvtier_operator.planning.image_source import ImageSource


@dataclass(frozen=True, slots=True)
class Options:
    """How it runs.

    Attributes:
        namespaces: What it serves; none for the whole cluster.
        images: Where this cluster gets the images from that no resource names.
    """

    namespaces: tuple[str, ...] = ()
    images: ImageSource = field(default_factory=ImageSource)
