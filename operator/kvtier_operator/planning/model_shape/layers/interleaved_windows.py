"""Windows that a file gives layer by layer, whatever its `layer_types` say: openPangu, PLaMo 3.

Source: vLLM 0.32 and 0.33, models/openpangu.py and plamo3.py, per_layer_sliding_window.
"""

from collections.abc import Sequence
from typing import Final

from kvtier_operator.planning.model_shape.config.fields import ConfigFields

_FIELD: Final = "interleaved_sliding_window"
_PLAMO3: Final = "plamo3"


def interleaved_windows(config: ConfigFields, layers: int) -> tuple[int, ...]:
    """Tokens of each layer's window, 0 for a layer that attends to everything; empty where a file has none.

    Raises:
        InvalidInputError: A window is no number.
    """
    found = config.get(_FIELD)
    if isinstance(found, Sequence) and not isinstance(found, str) and found:
        windows = tuple(0 if window is None else window for window in found)
        if not all(type(window) is int and window >= 0 for window in windows):
            raise config.wrong(_FIELD, "must be a whole number, or a list of whole numbers and nulls")
        return tuple(windows[i % len(windows)] for i in range(layers))
    if found is not None:
        return (config.int(_FIELD),) * layers
    if config.text("model_type") != _PLAMO3 or not config.has("window_size"):
        return ()
    # its own configuration class makes the list: the last layer of each period attends to everything
    period = config.int("sliding_window_pattern")
    return tuple(config.int("window_size") if (i + 1) % period else 0 for i in range(layers))


def interleaved_window(config: ConfigFields) -> int:
    """The one size of those windows; 0 where there is none.

    Raises:
        InvalidInputError: The windows are of several sizes, which kvtier does not size.
    """
    found = config.get(_FIELD)
    longest = len(found) if isinstance(found, Sequence) else 1
    sizes = set(interleaved_windows(config, max(longest, 2))) - {0}
    if len(sizes) > 1:
        raise config.wrong(
            _FIELD, "has windows of several sizes, which kvtier cannot size; set spec.model.geometry"
        )
    return next(iter(sizes), 0)
