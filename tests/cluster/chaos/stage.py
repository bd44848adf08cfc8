"""Whom tests and operators are to the API server of trouble."""

from dataclasses import dataclass

from kubernetes import client


@dataclass(frozen=True, slots=True)
class Stage:
    """Their connections' settings."""

    administrator: client.Configuration
    operator: client.Configuration
