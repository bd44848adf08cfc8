"""Why the workload could not be asked."""

import click


class ServerError(click.ClickException):
    """The server does not answer, or refuses; one line for the person who started the benchmark."""

    exit_code = 3
