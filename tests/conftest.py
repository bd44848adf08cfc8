"""What holds for all tests."""

from hypothesis import settings

# On a machine that others use, how long an example took says nothing.
settings.register_profile("kvtier", deadline=None)
settings.load_profile("kvtier")
