"""Others write to a resource's objects as fast as the operator does, and it ends as it is wanted."""

import asyncio
import random
from collections.abc import Mapping
from contextlib import suppress
from itertools import chain, product
from pathlib import Path
from typing import Any, Final

import pytest
from tests.cluster.chaos.deeds import DEEDS, FieldPath, Others, objects, own_fields, try_change
from tests.cluster.chaos.life import Life
from tests.cluster.chaos.proxy import NONE, Fault, Proxy, operator_through
from tests.cluster.chaos.stage import Stage
from tests.cluster.harness.api.connection import AT_A_TIME
from tests.cluster.harness.programs.tools import Say

from kvtier_operator.planning.observed import Observed
from kvtier_operator.reconcile.api_server import BY_NAME, KVCACHETIER, Ref
from kvtier_operator.reconcile.apply.diff import diff
from kvtier_operator.reconcile.cache.live_object import live_ref
from kvtier_operator.reconcile.cache.live_objects import LiveObjectCache
from kvtier_operator.reconcile.cache.resources import Key, ResourceCache
from kvtier_operator.reconcile.facts.cached_plan import DesiredObject
from kvtier_operator.reconcile.loop.plan_resource import ClusterObservation, plan_resource

_PATIENCE_S: Final = 45.0
_WRITES_A_DEED: Final = 6
"""A deed may meet several rounds, and a round all objects; a status and an Event follow."""
_QUIET_S: Final = 1.0
"""After this long without a write a deed needs none: a repair that was under way undid it as well."""


async def _drift(stage: Stage, folder: Path, say: Say, deeds: int) -> None:
    async with stage.up() as (connection, proxy):
        async with operator_through(proxy, folder, "undrifted"):
            calm = Life(connection, "undrifted")
            await calm.create()
            await calm.settled()
            await calm.change()
            expected = await calm.settled()
        undisturbed = proxy.writes
        async with operator_through(proxy, folder, f"drifted-{deeds}") as operator:
            life = Life(connection, f"drifted-{deeds}")
            await life.create()
            others = Others(connection, life.namespace, seed=deeds)
            moments = random.Random(deeds)  # noqa: S311 - not for secrets
            for deed in range(deeds):
                if deed == deeds // 2:
                    await life.change()
                # the next deed comes at once, when a repair arrives at the server, or when that is answered
                moment = moments.choice((None, proxy.next_write, proxy.next_answer))
                if await others.do_something() and moment is not None:
                    with suppress(TimeoutError):
                        await asyncio.wait_for(moment.wait(), _QUIET_S)
            await life.becomes(expected)
            writes = proxy.writes - 2 * undisturbed
            say(f"{others.done} of {deeds} deeds of others were repaired by {writes} writes")
            assert others.done > deeds / 3
            assert writes < _WRITES_A_DEED * others.done
            for first, second in product(("edit", "take owner"), DEEDS):
                await _two_deeds(proxy, others, first, second)
                await life.becomes(expected, _PATIENCE_S)  # and no later deed helps
            assert "Traceback" not in operator.process.log.read_text()


async def _two_deeds(proxy: Proxy, others: Others, first: str, second: str) -> None:
    """Both to one object, the second before the first one's repair is answered."""
    while not (place := await others.pick()):
        pass
    is_repaired, second_is_done = asyncio.Event(), asyncio.Event()
    proxy.choose = lambda call: Fault(after=is_repaired.set, held=second_is_done) if call.write else NONE
    if await others.do(first, *place):
        await asyncio.wait_for(is_repaired.wait(), _PATIENCE_S)
    await others.do(second, *place)
    second_is_done.set()


async def _see_all(stage: Stage, folder: Path) -> None:
    async with stage.up() as (connection, proxy):
        async with operator_through(proxy, folder, "seen"):
            life = Life(connection, "seen")
            await life.create()
            await life.settled()
        resources, key = ResourceCache(lambda _: None), Key("seen", "life")
        resources.upsert(await connection.request("GET", KVCACHETIER.path(*key)))
        resource = resources.get(key)
        assert resource
        wanted = {
            child.ref: child
            for child in plan_resource(key, resource, ClusterObservation(Observed(nodes=()), 0, ""))[1]
        }
        live = await objects(connection, "seen")
        assert len(live) == len(wanted)
        turns = asyncio.Semaphore(AT_A_TIME)

        async def unseen(kind: str, each: dict[str, Any], path: FieldPath, *, remove: bool) -> list[str]:
            async with turns:
                changed = await try_change(connection, kind, each, path, remove=remove)
            if changed is None or _would_be_repaired(kind, changed, wanted, resource.uid):
                return []
            what = "removed from" if remove else "changed in"
            return [f"{path} {what} {kind} {each['metadata']['name']}"]

        found = await asyncio.gather(
            *(
                unseen(kind, each, path, remove=remove)
                for kind, each in live
                for path in own_fields(each)
                for remove in (False, True)
            )
        )
        lines = "\n".join(chain(*found))
        assert not lines, lines


def _would_be_repaired(
    kind: str, changed: dict[str, Any], wanted: Mapping[Ref, DesiredObject], owner_uid: str
) -> bool:
    live_objects = LiveObjectCache(lambda *_: None)
    live_objects.upsert(BY_NAME[kind], changed)
    live_object = live_objects.get(live_ref(BY_NAME[kind], changed))
    assert live_object
    work = diff([wanted[live_object.ref]], [live_object], live_objects.get, lambda _: True, owner_uid)
    return bool(work.out_of_sync)


def test_every_change_to_a_field_of_kvtiers_is_seen(stage: Stage, tmp_path: Path) -> None:
    asyncio.run(_see_all(stage, tmp_path))


@pytest.mark.parametrize("deeds", [100, pytest.param(2000, marks=pytest.mark.long)])
def test_whatever_others_do_is_repaired(stage: Stage, tmp_path: Path, say: Say, deeds: int) -> None:
    asyncio.run(_drift(stage, tmp_path, say, deeds))
