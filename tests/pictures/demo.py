"""docs/images/demo.png: the top of the page that `make demo` writes, as a browser shows it.

python -m tests.pictures.demo
"""

import os
import subprocess
import tempfile
from pathlib import Path
from typing import Final

import click
from tests.pictures.programs import program

_WIDTH: Final = 1000
_EXISTING: Final = click.Path(exists=True, dir_okay=False, path_type=Path)


@click.command()
@click.option("--report", type=_EXISTING, default=Path("build/demo/report.html"), show_default=True)
@click.option(
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    default=Path("docs/images/demo.png"),
    show_default=True,
)
@click.option("--height", default=910, show_default=True, help="How much of the page, in pixels.")
def main(*, report: Path, output: Path, height: int) -> None:
    """Have a headless Chromium draw the demo's page."""
    with tempfile.TemporaryDirectory() as profile:
        options = [
            "--headless=new",
            "--hide-scrollbars",
            "--disable-gpu",
            f"--user-data-dir={profile}",
            f"--window-size={_WIDTH},{height}",
            f"--screenshot={output.absolute()}",
        ]
        if os.geteuid() == 0:
            options.append("--no-sandbox")  # Chromium refuses root otherwise; the page is our own
        done = subprocess.run(  # noqa: S603 - our own page
            [program("chromium"), *options, report.absolute().as_uri()],
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )
    if done.returncode or not output.exists():
        raise click.ClickException(f"chromium ended with {done.returncode}: {done.stderr.strip()[-400:]}")
    click.echo(f"wrote {output}")


if __name__ == "__main__":
    main()
