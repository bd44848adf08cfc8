"""What a report shows of an engine: its command line and variables, without what may be a secret."""

from collections.abc import Mapping
from typing import Final

from kvtier_operator.planning.arguments.extra_args import means_option
from kvtier_operator.planning.plan import Plan

HIDDEN: Final = "(not shown)"
SECRETS: Final = ("--api-key", "--hf-token")
"""Options of vLLM 0.32 and 0.33 whose values are secrets."""


def shown_args(plan: Plan) -> tuple[str, ...]:
    """The engine's arguments; those of `SECRETS` may have several values, up to the next option."""
    shown: list[str] = []
    secret = False
    for word in plan.engine.args:
        if not word.startswith("-"):
            shown.append(HIDDEN if secret else word)
            continue
        secret = any(means_option(word, option) for option in SECRETS)
        name, is_joined, _ = word.partition("=")
        shown.append(f"{name}={HIDDEN}" if secret and is_joined else word)
    return tuple(shown)


def shown_env(plan: Plan) -> Mapping[str, str]:
    """The engine's variables; a value that the resource has itself its reader finds there."""
    given = {variable.name for variable in plan.resource.spec.engine.env}
    return {name: HIDDEN if name in given else value for name, value in plan.engine.env.items()}
