"""A gateway that needs nothing of its own, or one that kvtier does not know."""

from typing import Final

from kvtier_operator.planning.objects.gateway.providers.provider import Provider

NONE: Final = Provider()
