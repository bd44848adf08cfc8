"""Settings of the operator, given when it starts."""

from dataclasses import dataclass, field

from kvtier_operator.planning.base.owner_policy import OwnerPolicy
from kvtier_operator.planning.images import ImageSource


@dataclass(frozen=True, slots=True)
class Options:
    """What the operator serves, and how.

    Attributes:
        namespaces: Namespaces to serve; none for the whole cluster.
        images: Where this cluster gets the images from that no resource names.
        policy: What the cluster's owner lets resources ask for.
        asks_hub: Whether to ask Hugging Face for the configuration of a model that the catalogue lacks.
    """

    namespaces: tuple[str, ...] = ()
    images: ImageSource = field(default_factory=ImageSource)
    policy: OwnerPolicy = field(default_factory=OwnerPolicy)
    asks_hub: bool = False
