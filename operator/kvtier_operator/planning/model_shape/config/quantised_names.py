"""Quantised checkpoints of known models, by the names that they are published under.

Only where the name alone says that the cache is not quantised too: AWQ and GPTQ quantise weights, whoever
makes them, and an `-FP8` of the model's own publisher is weights in blocks. Others say it in a file.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

_WEIGHTS_ALONE: Final = re.compile(r"-(awq|gptq)(-int[48])?$")
_OF_THE_PUBLISHER: Final = re.compile(r"-fp8$")


@dataclass(frozen=True, slots=True)
class Quantised:
    """A checkpoint of a known model.

    Attributes:
        entry: The known model.
        quantization: `quantization_config` as its config.json has it, as far as the name says it.
    """

    entry: str
    quantization: Mapping[str, Any]


def quantised(model: str, names: Mapping[str, str]) -> Quantised | None:
    """The known model that a checkpoint was made of; None for a name that does not say it.

    Args:
        model: The checkpoint's name.
        names: Entries of the catalogue by name in lower case.
    """
    name = model.lower()
    if (entry := names.get(_OF_THE_PUBLISHER.sub("", name))) is not None:
        return Quantised(entry, {"quant_method": "fp8"})
    if (method := _WEIGHTS_ALONE.search(name)) is None:
        return None
    _, _, base = name[: method.start()].rpartition("/")
    entries = {entry for known, entry in names.items() if known.rpartition("/")[2] == base}
    return Quantised(entries.pop(), {"quant_method": method[1]}) if len(entries) == 1 else None
