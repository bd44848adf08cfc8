"""What vLLM's command line in a pod says against tiers, as far as it can be read; the engine decides."""

import shlex
from collections.abc import Iterator, Mapping
from typing import Any, Final

from kvtier_operator.api.spec.command_line import CommandLine
from kvtier_operator.planning.base.label_selector import mappings
from kvtier_operator.planning.base.vllm_minor import KNOWN_MINORS, vllm_minor

_VARIABLES: Final = ("VLLM_ADDITIONAL_ARGS", "VLLM_EXTRA_ARGS", "VLLM_ARGS")
"""In which wrappers of others take arguments, KServe's the first."""
_CACHING: Final = "--enable-prefix-caching"
_CONNECTORS: Final = ("--kv-transfer-config", "--kv-offloading-size")
"""By which vLLM has a connector: it takes one."""
_PIPELINE: Final = "--pipeline-parallel-size"


def command_remarks(container: Mapping[str, Any]) -> tuple[str, ...]:
    """A sentence for each thing by which an engine would leave itself alone, or that nobody knows.

    Args:
        container: The engine's, as in a pod.
    """
    return (*_remarks(CommandLine((*_words(container),)), str(container.get("image") or "")),)


def _remarks(line: CommandLine, image: str) -> Iterator[str]:
    if line.switch(_CACHING) is False:
        yield "prefix caching is off (--no-enable-prefix-caching), and a tier stands behind it: remove that"
    for option in _CONNECTORS:
        if line.last(option) is not None:
            yield f"it has a KV connector ({option}); kvtier takes no other's place: it will be left alone"
    if (line.number(_PIPELINE) or 1) > 1:
        yield f"it is pipeline-parallel ({_PIPELINE}), which kvtier does not support: it will be left alone"
    if not image:
        return
    minor = vllm_minor(image)
    if minor not in KNOWN_MINORS:
        known = " and ".join(f"0.{known}" for known in KNOWN_MINORS)
        what = f"has vLLM 0.{minor}" if minor else "does not tell its vLLM"
        yield f"image {image} {what}; kvtier runs in {known}, and leaves an engine of another alone"


def _words(container: Mapping[str, Any]) -> Iterator[str]:
    """Words of command, arguments and what wrappers add to them, those of scripts among them."""
    for field in ("command", "args"):
        items = container.get(field)
        for item in items if isinstance(items, list) else ():
            yield from _split(str(item))
    for variable in mappings(container.get("env")):
        if variable.get("name") in _VARIABLES:
            yield from _split(str(variable.get("value") or ""))


def _split(text: str) -> list[str]:
    """What a shell would take for words; the whole text where it is one word, a value, or no script."""
    if not any(character.isspace() for character in text) or text.lstrip().startswith(("{", "[")):
        return [text]
    try:
        words = shlex.split(text, comments=True)
    except ValueError:
        return text.split()
    # what `eval` reads again
    return [part for word in words for part in (_split(word) if word != text else [word])]
