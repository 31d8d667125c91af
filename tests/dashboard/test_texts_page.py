"""The completions of a run in a real browser, before the whole service, on both databases."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect

from rlvitals_monitor.settings import Settings
from tests.dashboard.barriers import grave_barriers
from tests.dashboard.completions import EVIL, damaged, healthy, report_of, usual
from tests.dashboard.house import House

pytestmark = pytest.mark.browser
OpenPage = Callable[..., Any]


@pytest.fixture
def house(database_url: str, tmp_path: Path) -> Iterator[House]:
    """With a run r1 of 24 steps whose last six have broken completions, and a run r2 without any."""
    with House(Settings(home=tmp_path / "home", database_url=database_url)) as house:
        house.plant("r1", name=EVIL)
        house.plant("r2")
        house.post("/reports", report_of(usual()))
        yield house


@pytest.fixture
def walk(house: House, open_page: OpenPage) -> Callable[..., Any]:
    return lambda path, **given: open_page(house.url, path, login=house.login, **given)


def test_the_worst_completion_of_the_newest_step_is_read_token_by_token(
    walk: Callable[..., Any], house: House
) -> None:
    page = walk("/ui/run/r1")
    page.get_by_role("link", name="Texts").click()
    expect(page.locator("#texts-text h2").first).to_contain_text("Step 23, sample 2")
    tokens = page.locator(".tokens")
    expect(tokens).to_contain_text("The sum <img src=x onerror=alert(1)> [U+202E]@everyone is [U+200B]\\xE4\\xBD5")
    expect(tokens).to_contain_text("[unassigned id 151900]\\xE4\\xBD<|im_end|>")
    tokens.locator("mark").filter(has_text="\\xE4").first.hover()
    told = page.locator("#token-told")
    expect(told).to_contain_text("id 60000, “\\xE4\\xBD”, bytes E4 BD, logp −9")
    tokens.focus()
    page.keyboard.press("ArrowRight")
    expect(told).to_contain_text("“5”, bytes 35, logp NaN")
    page.keyboard.press("ArrowRight")
    expect(told).to_contain_text("id 151900, unassigned, logp −Inf")
    page.keyboard.press("ArrowRight")
    expect(told).to_contain_text("logp missing")
    page.get_by_role("link", name="KL to the reference").click()
    expect(page.locator(".legend")).to_contain_text("10 nat and more")
    assert "heat=kl" in page.url
    classes = [set((tok.get_attribute("class") or "").split()) for tok in tokens.locator(".tok").all()[-5:]]
    looks = [next(iter(c - {"tok", "at"})) for c in classes]
    assert looks == ["heat-4", "nan", "pos-inf", "missing", "heat-0"]


def test_steps_are_walked_by_keys_and_the_address_brings_the_same_page_back(
    walk: Callable[..., Any], house: House
) -> None:
    page = walk("/ui/run/r1/texts")
    title = page.locator("#texts-steps h2")
    expect(title).to_have_text("Step 23")
    page.keyboard.press("ArrowLeft")
    expect(title).to_have_text("Step 22")
    page.keyboard.press("j")
    reading = page.locator("#texts-text h2").first
    expect(reading).to_contain_text("Step 22, sample 1")
    page.reload()
    expect(reading).to_contain_text("Step 22, sample 1")
    page.keyboard.press("ArrowRight")
    expect(title).to_have_text("Step 23")
    page.get_by_label("Step", exact=True).fill("3")
    page.get_by_label("Containing").fill("STEP 3 IS")
    page.get_by_role("button", name="Show").click()
    expect(title).to_have_text("Step 3")
    expect(page.locator(".entry")).to_have_count(3)
    page.get_by_role("link", name="Broken bytes").click()
    expect(page.locator("#texts-list")).to_contain_text("No completion of this step fits.")
    page.get_by_role("link", name="Show all").click()
    expect(page.locator(".entry")).to_have_count(3)
    page.get_by_role("link", name="Worst of the whole attempt").click()
    expect(page.locator(".entry").first).to_contain_text("step 23, sample 2")


def test_what_became_of_a_prompt_is_told_word_by_word(walk: Callable[..., Any], house: House) -> None:
    page = walk("/ui/run/r1/texts?step=4")
    page.locator(".chip", has_text="step 3, sample 1").click()
    diff = page.locator(".diff")
    expect(diff.locator("del")).to_have_text(["3"])
    expect(diff.locator("ins")).to_have_text(["4"])
    expect(page.locator(".script-words")).to_contain_text("Latin")
    expect(page.locator(".script-words")).to_contain_text("Chinese")


def test_a_new_step_appears_by_itself_where_the_newest_is_followed_and_nowhere_else(
    walk: Callable[..., Any], house: House
) -> None:
    follows, stays = walk("/ui/run/r1/texts"), walk("/ui/run/r1/texts?step=23")
    expect(follows.locator("#texts-steps h2")).to_have_text("Step 23")
    expect(stays.locator("#texts-steps h2")).to_have_text("Step 23")
    house.post("/reports", report_of([damaged(24, 0, 999)]))
    expect(follows.locator("#texts-steps h2")).to_have_text("Step 24")
    expect(follows.locator("#texts-text h2").first).to_contain_text("Step 24, sample 0")
    expect(stays.get_by_role("link", name=re.compile("Step 24:"))).to_be_attached()
    expect(stays.locator("#texts-steps h2")).to_have_text("Step 23")


def test_a_page_says_what_to_do_where_there_is_nothing_or_not_any_more(
    walk: Callable[..., Any], house: House
) -> None:
    page = walk("/ui/run/r2/texts")
    expect(page.locator("main")).to_contain_text("No completion has been kept yet")
    expect(page.locator("main")).to_contain_text("RLVITALS_TEXTS=0")
    page.goto(f"{house.url}/ui/run/r1/texts?text=999999&step=5")
    expect(page.locator("main")).to_contain_text("This completion is not here")
    page.get_by_role("link", name="Show the others").click()
    expect(page.locator("#texts-text h2").first).to_contain_text("Step 5, sample")
    page.goto(f"{house.url}/ui/run/nobody/texts")
    expect(page.locator("main")).to_contain_text("Not here")
    page.goto(f"{house.url}/ui/run/r1/texts?step=%00&text=x&at=-1&heat=%3Cb%3E&show=%3Cb%3E&attempt=none")
    expect(page.locator("main")).to_contain_text("Not here")


def test_a_completion_of_megabytes_stays_quick_and_one_without_tokens_is_shown_as_text(
    walk: Callable[..., Any], house: House
) -> None:
    long = healthy(50, 0, 2_001, f"{EVIL} " + "é" * 15_000)
    bare = healthy(51, 0, 2_002, f"{EVIL} \ufffd", token_ids=(), tokens=None)
    house.post("/reports", report_of([long, bare]))
    page = walk("/ui/run/r1/texts?step=50")
    expect(page.get_by_text(re.compile(r"Tokens 0 to 1,499 of 30,0\d\d"))).to_be_visible()
    page.get_by_role("link", name="Tokens after").click()
    expect(page.get_by_text(re.compile(r"Tokens 1,500 to 2,999"))).to_be_visible()
    page.goto(f"{house.url}/ui/run/r1/texts?step=51")
    expect(page.locator(".completion.whole")).to_contain_text("onerror=alert(1)> [U+202E]@everyone \ufffd")
    expect(page.locator("main")).to_contain_text("what stood there is not known")


@pytest.mark.parametrize(("width", "scheme"), [(1440, "dark"), (390, "light")])
def test_the_page_is_within_reach_of_all_and_of_a_phone(
    walk: Callable[..., Any], house: House, width: int, scheme: str
) -> None:
    page = walk("/ui/run/r1/texts?heat=kl", width=width, scheme=scheme)
    expect(page.locator(".legend")).to_be_visible()
    page.locator(".chip", has_text="step 22, sample 0").click()
    expect(page.locator(".diff")).to_be_visible()
    page.locator("summary", has_text="Prompt").click()
    told = grave_barriers(page)
    assert told == []
    assert page.evaluate("document.documentElement.scrollWidth") <= width
