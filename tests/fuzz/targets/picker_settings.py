"""The picker's configuration."""

from typing import Final

from tests.picker.flavours.inputs import EXAMPLE

from kvtier_scorer.config.flavors import picker_config
from kvtier_scorer.config.model import PickerConfigError
from kvtier_scorer.config.parse import parse_settings

SEEDS: Final = [picker_config("builtin", EXAMPLE).text.encode()]


def run(data: bytes) -> None:
    """Settings, or the error that says why not."""
    try:
        parse_settings(data.decode(errors="replace"))
    except PickerConfigError:
        return
