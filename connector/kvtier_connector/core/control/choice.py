"""Which blocks of a tier a clear means."""

from collections.abc import Sequence
from dataclasses import dataclass

from kvtier_connector.core.control.orders import ClearOrder
from kvtier_connector.core.index.index import BlockIndex


@dataclass(frozen=True, slots=True)
class Choice:
    """Blocks of one tier."""

    keys: list[bytes]
    of_unknown_owner: int = 0  # how many of them are no tenant's, and may be the one's that is cleared


def choose(
    index: BlockIndex | None, order: ClearOrder, prompts_keys: Sequence[bytes], *, may_have_strays: bool
) -> Choice:
    """Return what is meant in a tier; of one that has no index, the prompts' keys.

    With a tenant's blocks nobody's go, too, where those may be the tenant's: to clear too much has it
    computed again, to clear too little would serve what was to be gone.
    """
    if order.prompts:
        return Choice(list(dict.fromkeys(prompts_keys)))
    if index is None:
        return Choice([])
    if not order.share:
        return Choice(index.keys())
    strays = index.keys_of_nobody() if may_have_strays or index.may_have_strays else []
    return Choice(index.keys_of_tenant(order.share) + strays, len(strays))
