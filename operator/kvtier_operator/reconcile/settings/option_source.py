"""Names a wrong option as the user set it: as an option, a variable or a value of the chart."""

import os
from collections.abc import Mapping
from typing import Final

import click
from click.core import ParameterSource

from kvtier_operator.errors import InvalidInputError

_VALUES: Final[Mapping[str, str]] = {
    "KVTIER_POLICY": "operator.policy",
    "KVTIER_MODEL_CONFIGS": "operator.modelConfigs",
    "KVTIER_IMAGES": "images",
    "KVTIER_IMAGE_REGISTRY": "global.imageRegistry",
    "KVTIER_IMAGE_PULL_SECRETS": "global.imagePullSecrets",
    "KVTIER_REPOSITORY": "image.repository",
}
"""The chart's value that each variable comes from."""


def name_option_as_set(context: click.Context, error: InvalidInputError) -> InvalidInputError:
    """The same error, naming the environment variable where the option was set by one."""
    for parameter in context.command.params:
        name = parameter.name or ""
        variable = f"{context.auto_envvar_prefix}_{name.upper()}"
        of_environment = (
            variable in os.environ and context.get_parameter_source(name) is not ParameterSource.COMMANDLINE
        )
        if error.source in parameter.opts and of_environment:
            value = f" (in the chart {_VALUES[variable]})" if variable in _VALUES else ""
            return InvalidInputError(f"{variable}{value}", *error.problems)
    return error
