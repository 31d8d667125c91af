"""Writes a picture of every page, desktop and phone, light and dark: ``python -m tests.dashboard.screenshots``.

The runs are those of `stage`; only what says how long ago something was differs from one day to the next.
"""

from __future__ import annotations

import io
import re
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image
from playwright.sync_api import sync_playwright

from rlvitals_monitor.settings import Settings
from tests.dashboard.conftest import CHROMIUM, CHROMIUM_FLAGS, PATIENCE_S
from tests.dashboard.house import House, now_utc
from tests.dashboard.page_table import RUN, addresses
from tests.dashboard.stage import Staged, freshen, furnish, perform

FOLDER = Path(__file__).parents[2] / "docs" / "images"
SIZES = {"desktop": (1440, 900), "phone": (390, 844)}
SCHEMES = ("light", "dark")
TALLEST = {"desktop": 900, "phone": 2200}
"""Pixels of a page that are shown: on a desktop what stands above the fold."""
OF_RUNS_CHARTS = 1500
COLOURS = 128
SETTLED_MS = 1_500
PICTURE_MS = 120_000
MOST_BYTES = 6 << 20


def main(argv: Sequence[str] | None = None) -> int:
    """``argv`` are parts of names; without any all pictures are made anew."""
    wanted = list(sys.argv[1:] if argv is None else argv)
    FOLDER.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        url = f"sqlite:///{folder}/rlvitals.db"
        house = House(Settings(home=Path(folder) / "home", database_url=url))
        house.store.migrate()
        staged = perform(house.store, now_utc())
        with house:
            furnish(house, staged)
            for name, picture in _pictures(house, staged, wanted):
                (FOLDER / f"{name}.png").write_bytes(picture)
                print(f"{len(picture) / 1024:6.0f} KiB  docs/images/{name}.png", flush=True)
    total = sum(path.stat().st_size for path in FOLDER.glob("*.png"))
    print(f"{total / (1 << 20):.1f} MiB in all")
    return 0 if total <= MOST_BYTES else 1


def _pictures(house: House, staged: Staged, wanted: Sequence[str]) -> Iterator[tuple[str, bytes]]:
    table = addresses(staged.run, staged.command, staged.rule, staged.other)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=str(CHROMIUM), args=list(CHROMIUM_FLAGS))
        for size, (width, height) in SIZES.items():
            context = browser.new_context(viewport={"width": width, "height": height}, reduced_motion="reduce")
            page = context.new_page()
            page.set_default_timeout(PATIENCE_S * 1000)
            page.goto(f"{house.url}{house.login}")
            for place, path in table.items():
                names = {scheme: _name(place, size, scheme) for scheme in SCHEMES}
                if any(w in name for name in names.values() for w in wanted) or not wanted:
                    freshen(house.store, now_utc())
                    for scheme, picture in _both(page, f"{house.url}{path}", _tallest(place, size)).items():
                        yield names[scheme], picture
            context.close()
        browser.close()


def _tallest(place: str, size: str) -> int:
    return max(TALLEST[size], OF_RUNS_CHARTS if place == RUN else 0)


def _both(page: Any, url: str, tallest: int) -> dict[str, bytes]:
    """By scheme; switched on the page, as a person would."""
    page.goto(url)
    page.locator("main h1, main h2").first.wait_for()
    page.locator("#live-word").filter(has_text="Live").wait_for(state="attached")
    page.wait_for_timeout(SETTLED_MS)
    taken = {}
    for scheme in SCHEMES:
        if page.evaluate("document.documentElement.dataset.theme") != scheme:
            page.locator("#theme-toggle").click()
            page.wait_for_timeout(SETTLED_MS)
        taken[scheme] = _picture(page, tallest)
    return taken


def _picture(page: Any, tallest: int) -> bytes:
    page.mouse.move(0, 0)
    height = min(page.evaluate("document.documentElement.scrollHeight"), tallest)
    clip = {"x": 0, "y": 0, "width": page.viewport_size["width"], "height": height}
    return _small(page.screenshot(full_page=True, clip=clip, timeout=PICTURE_MS))


def _small(picture: bytes) -> bytes:
    """With few colours, which a page has anyway: a small dot keeps its own, a ground is exactly the theme's."""
    told = io.BytesIO()
    image = Image.open(io.BytesIO(picture)).convert("RGB")
    few = image.quantize(COLOURS, method=Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE)
    few.putpalette(_commonest(np.asarray(image), np.asarray(few)))
    few.save(told, "PNG", optimize=True)
    return told.getvalue()


def _commonest(pixels: Any, places: Any) -> bytes:
    """Of ``pixels`` (height, width, 3) the commonest at each of ``places`` (height, width), as a palette."""
    colours = (pixels.astype(np.int64) << (16, 8, 0)).sum(axis=2)
    pairs, counts = np.unique((places.astype(np.int64) << 24 | colours).ravel(), return_counts=True)
    told = np.zeros((int(places.max()) + 1, 3), np.uint8)
    for pair in pairs[counts.argsort()]:
        told[pair >> 24] = pair >> 16 & 255, pair >> 8 & 255, pair & 255
    return told.tobytes()


def _name(place: str, size: str, scheme: str) -> str:
    return f"{re.sub(r'[^a-z]+', '-', place or 'runs').strip('-')}-{size}-{scheme}"


if __name__ == "__main__":
    raise SystemExit(main())
