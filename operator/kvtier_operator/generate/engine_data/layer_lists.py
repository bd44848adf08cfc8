"""The list of layer kinds that a configuration class makes of nothing but the number of layers."""

import logging
from typing import Any, Final

# Two lengths that share no divisor: a list that repeats itself in both does so in all.
_LENGTHS: Final = (48, 61)
_LONGEST_PERIOD: Final = 16


def layer_period(cls: Any) -> dict[str, object]:  # noqa: ANN401 - of a package without types
    """What repeats in `layer_types`, and the last layer's kind where that is always another.

    Returns:
        Empty for a class that has no such list, one whose layers are all of full attention, and one
        whose list follows no period.
    """
    lists = [_layer_types(cls, length) for length in _LENGTHS]
    if not all(lists):
        return {}
    longest = lists[-1]
    for size in range(1, _LONGEST_PERIOD + 1):
        period = longest[:size]
        if all(_repeats(period, kinds[:-1]) for kinds in lists):
            if set(longest) == {"full_attention"}:
                return {}
            always = {kinds[-1] for kinds in lists}
            exact = all(_repeats(period, kinds) for kinds in lists)
            return {"period": period} if exact else {"period": period, "last": always.pop()}
    return {}


def _repeats(period: list[str], kinds: list[str]) -> bool:
    return all(kind == period[index % len(period)] for index, kind in enumerate(kinds))


def _layer_types(cls: Any, layers: int) -> list[str]:  # noqa: ANN401 - as above
    logging.disable(logging.ERROR)
    try:
        kinds = cls(num_hidden_layers=layers).layer_types
    except Exception:  # noqa: BLE001 - whatever the hundreds of classes raise
        return []
    finally:
        logging.disable(logging.NOTSET)
    listed = isinstance(kinds, list) and len(kinds) == layers and all(isinstance(kind, str) for kind in kinds)
    return kinds if listed else []
