"""The configuration of each resource's model, where neither the resource nor the catalogue has its shape."""

from dataclasses import dataclass, field
from typing import Final
from urllib.parse import quote

import orjson

from kvtier_common.errors import KvtierError, TooLargeError, UnreachableError
from kvtier_common.kubernetes.answers import as_object, items_of, parse_document
from kvtier_common.kubernetes.client import Api
from kvtier_operator.errors import InvalidInputError
from kvtier_operator.planning.model_shape.config.model_files import compact, config_of_map
from kvtier_operator.planning.model_shape.from_catalogue import shape_from_catalogue
from kvtier_operator.reconcile.cache.resources import CachedResource, Key
from kvtier_operator.reconcile.facts.cached_plan import FoundModelConfig
from kvtier_operator.reconcile.observe.huggingface import HubClient

_MOST_BYTES: Final = 4 << 20
"""Of an answer with one ConfigMap: it has 1 MiB (k8s.io/api, core/v1, MaxSecretSize), and more as JSON."""


@dataclass(frozen=True, slots=True)
class ModelConfigLookup:
    """Looks configurations up, in a ConfigMap or on Hugging Face."""

    api: Api
    hub: HubClient | None = field(default=None)  # asked for a model that the catalogue lacks; None: nobody is

    async def of(self, key: Key, resource: CachedResource) -> FoundModelConfig:
        """The configuration of a resource's model: looked up once a generation, or until a plan takes it."""
        known = resource.state.model
        if known is not None and known.generation == resource.generation and not waits_for_model(resource):
            return known
        nothing = FoundModelConfig(resource.generation)
        if resource.refusal:
            return nothing
        spec = orjson.loads(resource.spec).get("spec") or {}
        model = spec.get("model") or {}
        if reference := model.get("configRef"):
            return await self._from_config_map(key, str(reference.get("name")), nothing)
        if self.hub is None or model.get("geometry") or shape_from_catalogue(str(model.get("name"))):
            return nothing
        return await self._from_hub(self.hub, str(model.get("name")), model.get("revision"), nothing)

    async def _from_config_map(self, key: Key, name: str, nothing: FoundModelConfig) -> FoundModelConfig:
        called = f"ConfigMap {key.namespace}/{name}"
        # a list of one: the operator lists ConfigMaps anyway, and need not be let get each by its name
        path = f"/api/v1/namespaces/{quote(key.namespace, safe='')}/configmaps"
        query = {"fieldSelector": f"metadata.name={name}", "limit": "1"}
        try:
            items = items_of(parse_document(await self.api.get(path, query, most_bytes=_MOST_BYTES)))
        except TooLargeError:
            return _without_config(nothing, f"{called} is too long to be read")
        if not items:
            return _without_config(
                nothing, f"{called} is not there: make it with the model's config.json", again=True
            )
        try:
            config, source = config_of_map(as_object(items[0]), called)
            return FoundModelConfig(nothing.generation, compact(config, called), source, from_config_map=True)
        except InvalidInputError as error:
            return _without_config(nothing, str(error), again=True)

    async def _from_hub(
        self, hub: HubClient, name: str, revision: str | None, nothing: FoundModelConfig
    ) -> FoundModelConfig:
        try:
            config, source = await hub.config(name, revision)
            return FoundModelConfig(nothing.generation, compact(config, source), source)
        except UnreachableError as error:
            return _without_config(nothing, str(error), again=True)
        except KvtierError as error:
            return _without_config(nothing, str(error))


def asks_again(resource: CachedResource) -> bool:
    """Whether a model's configuration that was not found is looked for again by itself."""
    model = resource.state.model
    return model is not None and model.generation == resource.generation and model.retry


def waits_for_model(resource: CachedResource) -> bool:
    """Whether a resource waits for its model's configuration to be there, or to be corrected."""
    model, cached_plan = resource.state.model, resource.state.cached_plan
    if model is None or model.generation != resource.generation:
        return False
    was_rejected = (
        cached_plan is not None and cached_plan.generation == resource.generation and cached_plan.rejected
    )
    return model.retry or (model.from_config_map and was_rejected)


def _without_config(nothing: FoundModelConfig, why: str, *, again: bool = False) -> FoundModelConfig:
    return FoundModelConfig(nothing.generation, missing=why, retry=again)
