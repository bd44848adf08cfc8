"""What every part of the chart's values has in common."""

from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel


class ChartModel(BaseModel):
    """A part of the values: camelCase outside, refuses what it does not know."""

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True, extra="forbid", frozen=True)
