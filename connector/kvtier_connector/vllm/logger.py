"""The logger. vLLM configures handlers for its own name only, so ours is a child of it."""

import logging
from typing import Final

log: Final = logging.getLogger("vllm.kvtier")
