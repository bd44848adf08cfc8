"""How the tests type `python -m kvtier_release`."""

import subprocess
from collections.abc import Callable

Release = Callable[..., subprocess.CompletedProcess[str]]
"""Takes its arguments, and returns whatever came of it."""
