"""What vLLM's command line and image in a pod say against tiers, as far as they can be read."""

import re
import shlex
from collections.abc import Iterator, Mapping
from itertools import pairwise, takewhile
from typing import Any, Final

from kvtier_connector.attach.decisions import EXECUTORS
from kvtier_operator.api.spec.command_line import CommandLine
from kvtier_operator.planning.attach.container import AMD_GPU
from kvtier_operator.planning.attach.left_alone import LeftAlone, Reason
from kvtier_operator.planning.base.label_selector import mapping, mappings
from kvtier_operator.planning.base.vllm_minor import KNOWN_MINORS, vllm_minor
from kvtier_operator.planning.kv_cache.split import ENGINES_BY, EXECUTOR

_VARIABLES: Final = ("VLLM_ADDITIONAL_ARGS", "VLLM_EXTRA_ARGS", "VLLM_ARGS")
"""In which wrappers of others take arguments, KServe's the first."""
_CACHING: Final = "--enable-prefix-caching"
_CONNECTORS: Final = ("--kv-transfer-config", "--kv-offloading-size")
"""By which vLLM has a connector: it takes one."""
_PIPELINE: Final = "--pipeline-parallel-size"
_NODES: Final = "--nnodes"
_MODEL: Final = "--model"
_SERVED: Final = "--served-model-name"
_SERVE: Final = "serve"
_HUB_NAME: Final = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*")
"""Of a model, and of no folder, variable or name that its owner made up."""
_SERVERS: Final = "--data-parallel-multi-port-external-lb"
_BY_HAND: Final = ("--data-parallel-rank", "--data-parallel-external-lb")
_SERVER: Final = "vllm.entrypoints.openai.api_server"
_OTHERS: Final = frozenset({"lmcache_server", "lmcache_v0_server", "lmcache_controller"})
"""Programs that stand beside engines in the same images."""
_MAY_BE_VLLM: Final = re.compile(r"\Avllm\Z|\Avllm\.|\.vllm\Z|\Apython|\.(py|sh)\Z")
"""It, a module of it or of a wrapper, or a script, of which nobody knows here what it starts."""
_NOT_CHOSEN: Final = frozenset({"", "None"})
_ROCM: Final = "rocm"
"""In the names of images for AMD's GPUs."""
_ASSIGNED: Final = re.compile(r"\A[A-Za-z_]\w*=(?=--)")
"""How scripts put options into a variable, as KServe's does with those of kvCacheOffloading."""
_VERSIONS: Final = " or ".join(f"0.{minor}" for minor in KNOWN_MINORS)


def find_obstacle(container: Mapping[str, Any]) -> LeftAlone | None:
    """Why the engine would leave itself alone, where its command line or image proves it.

    Args:
        container: The engine's, as in a pod.
    """
    words = (*_words(container),)
    return _other_program(words) or next(_obstacles(CommandLine(words), container), None)


def model_remark(container: Mapping[str, Any], model: str, further: tuple[str, ...] = ()) -> str:
    """What to know where the pod serves another model than the tiers are planned for; else empty.

    Folders, variables and names that an owner made up tell of no model.

    Args:
        container: The engine's.
        model: Of the KVCacheTier; empty where it names none.
        further: Names that the pod's model has besides, as its owner's object has them.
    """
    words = (*_words(container),)
    names = [name for name in (*further, *_model_names(words, container)) if _HUB_NAME.fullmatch(name)]
    if not model or not names or model.casefold() in (name.casefold() for name in names):
        return ""
    return (
        f"it serves {names[0]}, and spec.model.name is {model}, for which sizes are planned: write the same"
    )


def _model_names(words: tuple[str, ...], container: Mapping[str, Any]) -> Iterator[str]:
    """What the command line calls the model: where it is, and what it is served as."""
    line = CommandLine(words)
    serves = [place for place, word in enumerate(words) if word == _SERVE]
    # vLLM's image takes arguments alone
    place = serves[-1] + 1 if serves else 0
    if (serves or not container.get("command")) and place < len(words):
        yield words[place]
    if (named := line.value(_MODEL)) is not None:
        yield named
    if (served := line.last(_SERVED)) is not None:
        yield served.value or ""
        behind = words[served.position + 1 :]
        yield from takewhile(lambda word: not word.startswith("-"), behind)


def image_remark(container: Mapping[str, Any]) -> str:
    """What to know where nothing tells which vLLM runs; empty where something does."""
    image = str(container.get("image") or "")
    if not image:
        return f"no image is named here: the preset's must have vLLM {_VERSIONS}, or its engine gets no tier"
    if vllm_minor(image) is not None:
        return ""
    return f"image {image} does not tell its vLLM: one of another minor than {_VERSIONS} gets no tier"


def servers_remark(container: Mapping[str, Any]) -> str:
    """What to know where the command line may start several servers in the pod; empty where it does not."""
    words = [*_words(container)]
    starts = words.count(_SERVER) + sum(
        word == "serve" and before.rpartition("/")[2] == "vllm" for before, word in pairwise(words)
    )
    if starts < 2 and CommandLine((*words,)).last(*_BY_HAND) is None:  # noqa: PLR2004 - several
        return ""
    return (
        "of several servers in a pod only the first has the tiers: start its data-parallel ranks by one "
        "(--data-parallel-size-local)"
    )


def _other_program(words: tuple[str, ...]) -> LeftAlone | None:
    """Of a container that runs something known, and no vLLM as far as its command shows."""
    programs = [word.rpartition("/")[2] for word in words]
    if any(_MAY_BE_VLLM.search(program) for program in programs):
        return None
    if ("ray", "start") in pairwise(programs):
        return LeftAlone(
            Reason.UNKNOWN_EXECUTOR,
            "it joins a Ray cluster (ray start), which starts ranks of engines there: kvtier knows those of "
            f"{' and '.join(EXECUTORS)} ({EXECUTOR})",
        )
    if (other := next((program for program in programs if program in _OTHERS), None)) is not None:
        return LeftAlone(
            Reason.NO_ENGINE,
            f"it runs {other}, and no vLLM: name the engine's container in spec.attach.container, or have "
            "spec.attach.podSelector leave these pods out",
        )
    return None


def _obstacles(line: CommandLine, container: Mapping[str, Any]) -> Iterator[LeftAlone]:
    if line.switch(_CACHING) is False:
        yield LeftAlone(
            Reason.NO_PREFIX_CACHING,
            "prefix caching is off (--no-enable-prefix-caching), and a tier stands behind it: remove that",
        )
    for option in _CONNECTORS:
        if line.last(option) is not None:
            yield LeftAlone(
                Reason.HAS_CONNECTOR,
                f"it has a KV connector ({option}): remove that, and it can have kvtier's",
            )
    if (line.number(_PIPELINE) or 1) > 1:
        yield LeftAlone(
            Reason.PIPELINE_PARALLEL, f"it is pipeline-parallel ({_PIPELINE}), which kvtier does not support"
        )
    if (line.number(_NODES) or 1) > 1:
        yield LeftAlone(
            Reason.SEVERAL_NODES,
            f"its ranks are on several nodes ({_NODES}), and a tier is one node's memory",
        )
    launcher = "ray" if line.value(ENGINES_BY) == "ray" else line.value(EXECUTOR) or ""
    if launcher not in {*_NOT_CHOSEN, *EXECUTORS} and "$" not in launcher:
        yield LeftAlone(
            Reason.UNKNOWN_EXECUTOR,
            f"its ranks are started by {launcher}, and kvtier knows those of {' and '.join(EXECUTORS)} "
            f"({EXECUTOR})",
        )
    if line.is_on(_SERVERS):
        yield LeftAlone(
            Reason.SEVERAL_SERVERS,
            f"it has a server for each data-parallel rank ({_SERVERS}), and none knows its part of the tiers",
        )
    image = str(container.get("image") or "")
    if _ROCM in image or AMD_GPU in mapping(mapping(container.get("resources")).get("limits")):
        yield LeftAlone(Reason.UNKNOWN_DEVICE, "it runs on AMD's GPUs, and kvtier on NVIDIA's and on CPUs")
    minor = vllm_minor(image)
    if minor is not None and minor not in KNOWN_MINORS:
        yield LeftAlone(
            Reason.UNKNOWN_VERSION, f"image {image} has vLLM 0.{minor}, and kvtier runs in {_VERSIONS}"
        )


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
    text = _ASSIGNED.sub("", text)
    if not any(character.isspace() for character in text) or text.lstrip().startswith(("{", "[")):
        return [text]
    try:
        words = shlex.split(text, comments=True)
    except ValueError:
        return text.split()
    # what `eval` reads again
    return [part for word in words for part in (_split(word) if word != text else [word])]
