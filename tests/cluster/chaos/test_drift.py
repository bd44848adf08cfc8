"""Others write to a resource's objects as fast as the operator does, and it ends as it is wanted."""

import asyncio
import random
from collections.abc import Mapping
from itertools import chain, product
from pathlib import Path
from typing import Any, Final

import pytest
from tests.cluster.chaos.deeds import DEEDS, FieldPath, Others, objects, own_fields, tried
from tests.cluster.chaos.life import Life
from tests.cluster.chaos.proxy import NONE, Fault, operator_through
from tests.cluster.chaos.stage import Stage
from tests.cluster.harness.api.connection import AT_A_TIME
from tests.cluster.harness.programs.tools import Say

from kvtier_operator.planning.observed import Observed
from kvtier_operator.reconcile.api_server.kinds import BY_NAME, KVCACHETIER, Ref
from kvtier_operator.reconcile.apply.desired import DesiredObject
from kvtier_operator.reconcile.apply.diff import diff
from kvtier_operator.reconcile.cache.live_object import live_ref
from kvtier_operator.reconcile.cache.live_objects import LiveObjectCache
from kvtier_operator.reconcile.cache.resources import Key, ResourceCache
from kvtier_operator.reconcile.loop.cluster_observation import ClusterObservation
from kvtier_operator.reconcile.loop.plan_resource import plan_resource

_LATE_S: Final = 0.1
_PATIENCE_S: Final = 45.0
_WRITES_A_DEED: Final = 6
"""A deed may meet several rounds, and a round all objects; a status and an Event follow."""


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
            pause = random.Random(deeds)  # noqa: S311 - not for secrets
            for deed in range(deeds):
                if deed == deeds // 2:
                    await life.change()
                await others.do_something()
                await asyncio.sleep(pause.uniform(0.005, 0.06))
            await life.becomes(expected)
            writes = proxy.writes - 2 * undisturbed
            say(f"{others.done} of {deeds} deeds of others were repaired by {writes} writes")
            assert others.done > deeds / 3
            assert writes < _WRITES_A_DEED * others.done
            # in pairs, the second before the first one's repair is answered; no later deed helps
            proxy.choose = lambda call: Fault(late_s=_LATE_S) if call.write else NONE
            for first, second in product(("edit", "take owner"), DEEDS):
                while not (place := await others.pick()):
                    pass
                await others.do(first, *place)
                await asyncio.sleep(_LATE_S / 2)
                await others.do(second, *place)
                await life.becomes(expected, _PATIENCE_S)
            assert "Traceback" not in operator.process.log.read_text()


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
            each.ref: each
            for each in plan_resource(key, resource, ClusterObservation(Observed(nodes=()), 0, ""))[1]
        }
        live = await objects(connection, "seen")
        assert len(live) == len(wanted)
        turns = asyncio.Semaphore(AT_A_TIME)

        async def unseen(kind: str, each: dict[str, Any], path: FieldPath, *, remove: bool) -> list[str]:
            async with turns:
                changed = await tried(connection, kind, each, path, remove=remove)
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
