"""`make cluster-tools`: everything that the cluster tests download or build, before a test's time runs.

python -m tests.cluster.harness.prepare [--long]
"""

import sys
from concurrent.futures import ThreadPoolExecutor

import click
from tests.cluster.harness.images.engines import engine_mounts
from tests.cluster.harness.images.kvtier import ARCHIVES
from tests.cluster.harness.programs.modules import published_crds
from tests.cluster.harness.programs.tools import MODULES, MissingToolError, Say, programs
from tests.cluster.harness.providers.chosen import chosen_provider
from tests.cluster.harness.providers.provider import Ability, lacking


def prepare(say: Say, *, long: bool) -> None:
    """Programs and CRDs always; packages, images and the model where the provider can run a node.

    Compilers need the processors, packages and images the network and the disk: they go side by side.

    Args:
        say: Takes lines about what takes long.
        long: Whether what only long tests need is wanted, too.

    Raises:
        MissingToolError: Something cannot be had.
    """
    with ThreadPoolExecutor() as beside:
        images = beside.submit(_images, say)
        wanted = [module for module in MODULES if long or not module.only_long]
        programs([name for module in wanted for name in module.packages], say)
        published_crds()
        images.result()


def _images(say: Say) -> None:
    provider = chosen_provider()
    if reason := lacking(provider, Ability.NODE):
        say(reason)
        return
    engine_mounts(say)
    for archive in ARCHIVES:
        archive(say)


if __name__ == "__main__":
    try:
        prepare(click.echo, long="--long" in sys.argv)
    except MissingToolError as missing:
        sys.exit(f"cluster tests: {missing}")
