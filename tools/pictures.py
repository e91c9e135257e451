"""`make pictures`: docs/pictures/status-page.png, taken by Chromium of examples/02-pallas while it runs.

`--url URL` takes the page of a registry that runs already, `--output FILE` writes another file. Exit code 1: there is
no Chromium, or the fleet does not come up.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from pathlib import Path

import demo
from browser import CHROMIUM, load
from rich.console import Console

ROOT = Path(__file__).parent.parent
OUTPUT = ROOT / "docs" / "pictures" / "status-page.png"
WIDTH = 1280
"""Pixels: wide enough for the descriptions of the agents. The height ends below the graph."""
SCALE = 0.85
"""Pixels of the picture for one of the page: the README shows it smaller still, and it is loaded with it."""


async def shoot(url: str, path: Path) -> None:
    """Take the picture of the status page at `url`, once it is live and shows no agent that is starting."""
    from playwright.async_api import async_playwright, expect  # noqa: PLC0415 - for development only

    async with async_playwright() as driver:
        browser = await driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        page = await browser.new_page(viewport={"width": WIDTH, "height": 800}, device_scale_factor=SCALE)
        await load(page, url)
        await expect(page.locator("#live")).to_have_text("live")
        path.parent.mkdir(parents=True, exist_ok=True)
        graph = await page.locator("#graph").bounding_box()
        end = graph["y"] + graph["height"] + 24 if graph else 800
        await page.screenshot(path=str(path), full_page=True, clip={"x": 0, "y": 0, "width": WIDTH, "height": end})
        await browser.close()


async def run(path: Path) -> None:
    """Start the example on its own ports, wait until all is well, and take the picture.

    Raises:
        demo.Failed: it does not come up.
    """
    fleet, _, _ = demo.load.load(demo.CONFIG)
    url = f"http://127.0.0.1:{fleet.registry_port}"
    console = Console(stderr=True, highlight=False)
    async with demo.pallas(console, demo.CONFIG) as running:
        await demo.until_ok(running, fleet, url)
        await demo.ask(console, demo.addresses.mcp_url(fleet, "harper", "local"), [])
        await shoot(f"{url}/", path)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--url", help="a registry that runs already")
    parser.add_argument("--output", type=Path, default=OUTPUT)
    arguments = parser.parse_args()
    if CHROMIUM is None:
        print("there is no chromium: tools/chromium", file=sys.stderr)
        return 1
    try:
        asyncio.run(shoot(arguments.url, arguments.output) if arguments.url else run(arguments.output))
    except demo.Failed as failure:
        print(failure, file=sys.stderr)
        return 1
    print(f"wrote {arguments.output}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
