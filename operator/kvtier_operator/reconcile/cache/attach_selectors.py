"""Which pods the KVCacheTiers of each namespace select, as they stand, planned or not."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from kvtier_operator.planning.attach.rivals import Rival, may_share_pods
from kvtier_operator.planning.base.label_selector import mapping
from kvtier_operator.reconcile.cache.resources import Key

Labels = Mapping[str, str]


@dataclass(slots=True)
class AttachSelectors:
    """Of resources with spec.attach alone."""

    _by_namespace: defaultdict[str, dict[str, Labels]] = field(default_factory=lambda: defaultdict(dict))

    def upsert(self, key: Key, document: Mapping[str, Any]) -> set[Key]:
        """Takes a resource as it is now; returns others of which that may change what they are given."""
        attach = mapping(mapping(document.get("spec")).get("attach"))
        labels = mapping(mapping(attach.get("podSelector")).get("matchLabels"))
        before = self._by_namespace.get(key.namespace, {}).get(key.name, {})
        if labels == before:
            return set()
        affected = self.rival_keys(key)
        if labels:
            self._by_namespace[key.namespace][key.name] = labels
            return affected | self.rival_keys(key)
        self._drop(key)
        return affected

    def delete(self, key: Key) -> set[Key]:
        """The same for one that is gone."""
        affected = self.rival_keys(key)
        self._drop(key)
        return affected

    def rivals(self, key: Key) -> Iterable[Rival]:
        """Others that may select pods of a resource's, by name."""
        selectors = self._by_namespace.get(key.namespace, {})
        own = selectors.get(key.name)
        for name in sorted(selectors) if own else ():
            if name != key.name and may_share_pods(own or {}, selectors[name]):
                yield Rival(name, selectors[name])

    def rival_keys(self, key: Key) -> set[Key]:
        """The same as keys."""
        return {Key(key.namespace, rival.name) for rival in self.rivals(key)}

    def _drop(self, key: Key) -> None:
        selectors = self._by_namespace.get(key.namespace, {})
        selectors.pop(key.name, None)
        if not selectors:
            self._by_namespace.pop(key.namespace, None)
