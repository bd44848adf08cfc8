"""Whether the engines serve HTTPS, which those who ask them must know."""

from typing import Final

from kvtier_operator.api.spec.engine import EngineSpec
from kvtier_operator.planning.arguments.extra_args import value_of

CERTIFICATE: Final = "--ssl-certfile"
SKIP_VERIFY: Final = {"insecureSkipVerify": True}
"""Pods are asked by address, which no certificate names; as pickers and the kubelet do by themselves."""


def serves_tls(engine: EngineSpec) -> bool:
    """Tell whether vLLM has a certificate; without one it serves HTTP (uvicorn/config.py, is_ssl)."""
    return bool(value_of(engine.extra_args, CERTIFICATE))
