"""Whether a secret stands where many may read it."""

import re
from typing import Final

from kvtier_operator.api.spec.command_line import FIELD
from kvtier_operator.planning.arguments.secret_options import SECRETS
from kvtier_operator.planning.checks.check import CheckInput, check
from kvtier_operator.planning.verdict import CheckResult

_VARIABLE: Final = re.compile(r"\$\([A-Za-z_][A-Za-z0-9_]*\)")
"""What Kubernetes replaces by a variable's value, which may come from a Secret."""


@check(FIELD)
def secret_arguments(parts: CheckInput) -> CheckResult:
    """A pod's arguments are read by whoever may read pods, and by all processes of its node."""
    faults = [
        (argument.field, f"{option} stands in the resource and in each pod's command: {instead}")
        for argument in parts.spec.engine.extra_args.arguments
        for option, instead in SECRETS.items()
        if argument.means(option) and argument.value and not _VARIABLE.fullmatch(argument.value)
    ]
    if faults:
        return secret_arguments.warn_each("SecretInArguments", faults, by_itself="passes it on", weight=40)
    return secret_arguments.passed("no secret among the arguments")
