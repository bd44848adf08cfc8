"""`python -m kvtier_release`: what `make release` and `make publish` run."""

import re
import sys
from pathlib import Path
from typing import Final

import click

from kvtier_common.errors import KvtierError
from kvtier_operator.planning.images import REGISTRY_FORM, REGISTRY_PATTERN
from kvtier_release.commands import uncommitted_files
from kvtier_release.make import Wanted, make_release
from kvtier_release.publish import Signing, publish
from kvtier_release.release import BUILT, Release

_ROOT: Final = Path(__file__).resolve().parents[2]
_FOLDER: Final = click.Path(file_okay=False, resolve_path=True, path_type=Path)
_in_dist = click.option("--dist", type=_FOLDER, default=_ROOT / "dist", help="The release's folder.")


def _registry(context: click.Context, parameter: click.Parameter, value: str) -> str:
    del context, parameter
    if not re.fullmatch(REGISTRY_PATTERN, value):
        raise click.BadParameter(f"{value!r} is not a registry: {REGISTRY_FORM}")
    return value


_to_registry = click.option(
    "--registry", required=True, callback=_registry, help="Where images and chart are: HOST[:PORT][/PATH]."
)


@click.group()
def main() -> None:
    """Make a release of this checkout, and publish it."""


@main.command()
@_to_registry
@_in_dist
@click.option(
    "--image",
    "images",
    multiple=True,
    type=click.Choice(BUILT),
    help="Have this image in it; repeatable. None: all. The chart names others by their tag.",
)
@click.option(
    "--archives",
    type=click.Path(exists=True, file_okay=False, resolve_path=True, path_type=Path),
    help="Folder with the images' OCI archives, NAME.tar; without it they are built here, with buildah.",
)
@click.option(
    "--earlier",
    type=click.Path(exists=True, dir_okay=False, resolve_path=True, path_type=Path),
    help="release.json of the release before, for images of engines' pods that stay as they were.",
)
@click.option("--repository-id", default="", help="What Artifact Hub calls the chart's repository.")
@click.option("--owner", default="", help="Mail address of whom Artifact Hub takes for its owner.")
def make(  # noqa: PLR0913, PLR0917 - one parameter an option
    registry: str,
    dist: Path,
    images: tuple[str, ...],
    archives: Path | None,
    earlier: Path | None,
    repository_id: str,
    owner: str,
) -> None:
    """Write everything of a release into its folder."""
    before = Release.earlier(earlier) if earlier else None
    wanted = Wanted(registry, images or BUILT, archives, before, repository_id, owner)
    if new := uncommitted_files(_ROOT):
        more = f" and {len(new) - 1} more" if len(new) > 1 else ""
        click.echo(f"not committed, and in the release as it is: {new[0]}{more}")
    if archives is None:
        click.echo(f"building with buildah: {', '.join(wanted.images)}")
    release = make_release(_ROOT, dist, wanted)
    click.echo(f"{dist}: kvtier {release.version} for {registry}")
    for name, image in sorted(release.references().items()):
        click.echo(f"  {name:<14} {image}")


@main.command("publish")
@_to_registry
@_in_dist
@click.option("--key", default="", help="Sign with cosign and this key; empty to sign nothing.")
@click.option("--cosign", "further", multiple=True, help="A further argument of cosign sign; repeatable.")
def publish_(registry: str, dist: Path, key: str, further: tuple[str, ...]) -> None:
    """Push a release's images and chart."""
    publish(_ROOT, dist, registry, Signing(key, further) if key else None, click.echo)


if __name__ == "__main__":
    try:
        main(prog_name="kvtier_release")
    except (KvtierError, OSError) as error:
        sys.exit(f"release: {error}")
