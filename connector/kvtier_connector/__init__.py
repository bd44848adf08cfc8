"""The vLLM KV connector: prefix-cache tiers beyond the device, first of all CPU memory."""

import sys
from pathlib import Path

_LACKING = str(Path(__file__).parents[1] / "lacking")
"""Where a payload has what its pod's image may lack: last, so that what the image has is not hidden."""
if Path(_LACKING).is_dir() and _LACKING not in sys.path:
    sys.path.append(_LACKING)
