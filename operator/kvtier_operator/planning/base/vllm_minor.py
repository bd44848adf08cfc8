"""Which minor of vLLM an engine's image has, where its tag tells."""

import re
from typing import Final

KNOWN_MINORS: Final = (32, 33)
"""Those that kvtier is made for and tested with."""
_TAG: Final = re.compile(r"v?0\.(\d+)(?:[.\-_+].*)?")


def possible_minors(minor: int | None) -> tuple[int, ...]:
    """What an engine may have: all that kvtier knows where its minor is not known, or none of these."""
    return KNOWN_MINORS if minor is None or minor not in KNOWN_MINORS else (minor,)


def vllm_minor(image: str) -> int | None:
    """33 for `vllm/vllm-openai:v0.33.0`; None where no tag, a digest, or another name says nothing.

    Args:
        image: A reference; vLLM's own, under any registry, has its version as the tag.
    """
    name, _, tag = image.partition("@")[0].rpartition(":")
    match = _TAG.fullmatch(tag)
    if match is None or "/lmcache/" in f"/{name}" or not name.rpartition("/")[2].startswith("vllm"):
        return None
    return int(match[1])
