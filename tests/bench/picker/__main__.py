"""python -m tests.bench.picker: the picker's own figures, and how it compares with others."""

from typing import Final

import click
from tests.bench.picker import attacks, core, hit_rate
from tests.bench.picker.through_envoy import compare

_COMMANDS: Final = {
    "core": core.main,
    "hit-rate": hit_rate.main,
    "through-envoy": compare.main,
    "attacks": attacks.main,
}

main = click.Group("picker", commands=_COMMANDS, help=__doc__)

if __name__ == "__main__":
    main()
