import pytest
from tests.unit.scorer.picker.gateway.protocol.exchanges import LIMIT

from kvtier_scorer.picker.gateway.bodies.budget import BodyBudget
from kvtier_scorer.picker.gateway.protocol.exchange import Exchange


@pytest.fixture
def exchange() -> Exchange:
    return Exchange(BodyBudget(2 * LIMIT, LIMIT, float).share())
