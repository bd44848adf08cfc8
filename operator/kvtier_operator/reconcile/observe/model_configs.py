"""The configuration of each resource's model, where neither the resource nor the catalogue has its shape."""

from dataclasses import dataclass, field
from typing import Final
from urllib.parse import quote

import orjson

from kvtier_operator.errors import InvalidInputError, KvtierError
from kvtier_operator.planning.model_shape.compact import compact
from kvtier_operator.planning.model_shape.config.model_files import config_of_map
from kvtier_operator.planning.model_shape.from_catalogue import shape_from_catalogue
from kvtier_operator.reconcile.api_server.client import Api
from kvtier_operator.reconcile.api_server.errors import TooLargeError, UnreachableError
from kvtier_operator.reconcile.cache.resources import Key, Tier
from kvtier_operator.reconcile.facts.found_config import Found
from kvtier_operator.reconcile.observe.hub import Hub

_MOST_BYTES: Final = 4 << 20
"""Of an answer with one ConfigMap: it has 1 MiB (k8s.io/api, core/v1, MaxSecretSize), and more as JSON."""


@dataclass(frozen=True, slots=True)
class ModelConfigs:
    """Looks for them.

    Attributes:
        api: The API server, which has ConfigMaps.
        hub: Whom to ask for a model that the catalogue lacks; None for nobody.
    """

    api: Api
    hub: Hub | None = field(default=None)

    async def of(self, key: Key, tier: Tier) -> Found:
        """What is known of a resource's model: looked for once a generation, or until it is of use.

        Args:
            key: The resource.
            tier: As it was last seen, with what was found before.

        Raises:
            KvtierError: The API server cannot be asked; trying again may help.
        """
        known = tier.memory.model
        if known is not None and known.generation == tier.generation and not waits(tier):
            return known
        nothing = Found(tier.generation)
        if tier.refusal:
            return nothing
        spec = orjson.loads(tier.spec).get("spec") or {}
        model = spec.get("model") or {}
        if reference := model.get("configRef"):
            return await self._of_config_map(key, str(reference.get("name")), nothing)
        if self.hub is None or model.get("geometry") or shape_from_catalogue(str(model.get("name"))):
            return nothing
        return await self._of_hub(self.hub, str(model.get("name")), model.get("revision"), nothing)

    async def _of_config_map(self, key: Key, name: str, nothing: Found) -> Found:
        called = f"ConfigMap {key.namespace}/{name}"
        # a list of one: the operator lists ConfigMaps anyway, and need not be let get each by its name
        path = f"/api/v1/namespaces/{quote(key.namespace, safe='')}/configmaps"
        query = {"fieldSelector": f"metadata.name={name}", "limit": "1"}
        try:
            items = orjson.loads(await self.api.get(path, query, most_bytes=_MOST_BYTES))["items"]
        except TooLargeError:
            return _missing(nothing, f"{called} is too long to be read")
        if not items:
            return _missing(
                nothing, f"{called} is not there: make it with the model's config.json", again=True
            )
        try:
            config, source = config_of_map(items[0], called)
            return Found(nothing.generation, compact(config, called), source, of_config_map=True)
        except InvalidInputError as error:
            return _missing(nothing, str(error), again=True)

    async def _of_hub(self, hub: Hub, name: str, revision: str | None, nothing: Found) -> Found:
        try:
            config, source = await hub.config(name, revision)
            return Found(nothing.generation, compact(config, source), source)
        except UnreachableError as error:
            return _missing(nothing, str(error), again=True)
        except KvtierError as error:
            return _missing(nothing, str(error))


def waits(tier: Tier) -> bool:
    """Whether a resource waits for its model's configuration: to be there, or to be of use."""
    model, planned = tier.memory.model, tier.memory.planned
    if model is None or model.generation != tier.generation:
        return False
    of_no_use = planned is not None and planned.generation == tier.generation and planned.rejected
    return model.look_again or (model.of_config_map and of_no_use)


def _missing(nothing: Found, why: str, *, again: bool = False) -> Found:
    return Found(nothing.generation, missing=why, look_again=again)
