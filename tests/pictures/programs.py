"""Programs that pictures are made with, where the machine has them."""

import shutil
from typing import Final

import click

_NAMES: Final = {
    "chromium": ("chromium", "chromium-browser", "google-chrome"),
    "prometheus": ("prometheus",),
}


def program(name: str) -> str:
    """Path of the program.

    Raises:
        ClickException: It is not installed.
    """
    for each in _NAMES[name]:
        if found := shutil.which(each):
            return found
    raise click.ClickException(f"{name}: no such program: install it (Debian: apt-get install {name})")
