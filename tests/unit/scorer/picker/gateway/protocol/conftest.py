import pytest
from tests.unit.scorer.picker.gateway.protocol.exchanges import LIMIT, new_exchange

from kvtier_scorer.picker.gateway.body_memory import BodyBudget
from kvtier_scorer.picker.gateway.protocol.exchange import Exchange


@pytest.fixture
def exchange() -> Exchange:
    return new_exchange(BodyBudget(2 * LIMIT, LIMIT, float))
