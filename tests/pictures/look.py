"""Looks at every page of the site in a headless Chromium: nothing may be cut off at any of three widths.

python -m tests.pictures.look build/site
"""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Final

import click
from tests.pictures.programs import program

WIDTHS: Final = (400, 1000, 1400)
_LONGEST_S: Final = 300
_LOOK: Final = Path(__file__).with_name("look.html")


class _Site(SimpleHTTPRequestHandler):
    """The site's files, the page that looks at them, and where that says what it has found."""

    def __init__(
        self, *arguments: object, asked: bytes, found: "SimpleQueue[list[str]]", folder: str
    ) -> None:
        self._asked, self._found = asked, found
        super().__init__(*arguments, directory=folder)  # type: ignore[arg-type]

    def do_GET(self) -> None:
        own = {"/look": ("text/html", _LOOK.read_bytes()), "/asked": ("application/json", self._asked)}
        if self.path not in own:
            super().do_GET()
            return
        kind, body = own[self.path]
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.end_headers()
        self.wfile.write(body)

    def do_POST(self) -> None:
        self._found.put(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
        self.send_response(204)
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - http.server's own name
        """Nothing: what matters is what was found."""


def cut_off(site: Path, widths: Sequence[int] = WIDTHS) -> list[str]:
    """What is cut off, a line each: page, width, and how it begins.

    Raises:
        ClickException: There is no Chromium, or it did not get to the end.
    """
    pages = sorted(str(page.relative_to(site)) for page in site.rglob("*.html"))
    asked = json.dumps({"pages": pages, "widths": [*widths]}).encode()
    found: SimpleQueue[list[str]] = SimpleQueue()
    handler = partial(_Site, asked=asked, found=found, folder=str(site))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        try:
            with _chromium(f"http://127.0.0.1:{server.server_port}/look"):
                return found.get(timeout=_LONGEST_S)
        except Empty:
            raise click.ClickException(f"Chromium has not looked at all pages in {_LONGEST_S} s") from None
        finally:
            server.shutdown()


@contextmanager
def _chromium(url: str) -> Iterator[None]:
    options = ["--headless=new", "--disable-gpu", f"--window-size={max(WIDTHS) + 100},1000"]
    if os.geteuid() == 0:
        options.append("--no-sandbox")  # Chromium refuses root otherwise; the pages are our own
    with (
        tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile,
        subprocess.Popen(  # noqa: S603 - our own pages
            [program("chromium"), *options, f"--user-data-dir={profile}", url],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        ) as process,
    ):
        try:
            yield
        finally:
            process.terminate()
            process.wait()


@click.command()
@click.argument("site", type=click.Path(exists=True, file_okay=False, path_type=Path))
def main(*, site: Path) -> None:
    """Say what of the site's pages is cut off; exit status 1 if anything is."""
    for line in (lines := cut_off(site)):
        click.echo(line, err=True)
    sys.exit(bool(lines))


if __name__ == "__main__":
    main()
