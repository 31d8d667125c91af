"""The pages in a real browser, over a real socket."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest
from playwright.sync_api import expect

from rlvitals.contract.command import CommandState
from rlvitals.contract.hooks import HookState, HooksView, HookTableView, HookView
from rlvitals.contract.view import AttemptView, EventView, Light
from tests.dashboard.conftest import PATIENCE_S, Site
from tests.dashboard.fake import RUN, START, FakeService
from tests.dashboard.synthetic import grow, lively

pytestmark = pytest.mark.browser
OpenPage = Callable[..., Any]
RUN_PAGE = f"/ui/run/{RUN}"


@pytest.fixture
def site() -> Iterator[Site]:
    with Site(lively()) as site:
        yield site


@pytest.fixture
def bare() -> Iterator[Site]:
    fake = FakeService()
    fake.runs.clear()
    with Site(fake) as site:
        yield site


def card(page: Any, metric: str) -> Any:
    return page.locator("figure.chart").filter(
        has=page.locator(".name", has_text=re.compile(f"^{re.escape(metric)}$"))
    )


def drawn(page: Any, metric: str, trace: str) -> Any:
    """The x of one trace of one chart, as the browser has it; None before the chart is there."""
    return page.evaluate(
        """([metric, trace]) => {
            const names = [...document.querySelectorAll('figure.chart .name')];
            const name = names.find((n) => n.textContent === metric);
            const plot = name && name.closest('figure').querySelector('.js-plotly-plot');
            return plot && plot.data ? plot.data.find((t) => t.name === trace).x : null;
        }""",
        [metric, trace],
    )


def advance(site: Site, step: int, other: dict[str, float] | None = None) -> None:
    """One more step of the run, with ``other`` values of some metrics."""

    def move() -> None:
        grow(site.fake, step)
        for metric, value in (other or {}).items():
            site.fake.put(metric, {step: value})
        site.fake.now_at(step)

    site.do(move)


def until(page: Any, condition: Callable[[], bool]) -> None:
    """Lets the page work until ``condition`` holds; the browser's clock paces it."""
    for _ in range(int(PATIENCE_S * 10)):
        if condition():
            return
        page.evaluate("new Promise((done) => setTimeout(done, 100))")
    pytest.fail(f"it did not come to pass within {PATIENCE_S:.0f} s")


def shown(page: Any, metric: str) -> Any:
    expect(card(page, metric).locator(".js-plotly-plot .main-svg").first).to_be_visible()
    return card(page, metric)


def grab(page: Any, metric: str, share: float) -> Callable[[float], None]:
    """Presses on a chart, at a share of its width; the answer moves the pointer to another one."""
    surface = shown(page, metric).locator(".nsewdrag").first
    surface.scroll_into_view_if_needed()
    box = surface.bounding_box()

    def move(to: float, steps: int = 4) -> None:
        page.mouse.move(box["x"] + box["width"] * to, box["y"] + box["height"] / 2, steps=steps)

    move(share, steps=1)
    page.mouse.down()
    return move


def test_nan_both_infinities_and_missing_are_seen_as_four_different_things(
    site: Site, open_page: OpenPage
) -> None:
    page = open_page(site.url, RUN_PAGE)
    gradient = shown(page, "gradient.norm")
    expect(gradient.locator(".kind.nan")).to_have_text("✕ NaN × 2, steps 41, 57")
    expect(gradient.locator(".kind.pos-inf")).to_have_text("▲ +Inf × 1, step 60")
    expect(gradient.locator(".kind.neg-inf")).to_have_count(0)
    expect(shown(page, "policy.loss").locator(".kind.neg-inf")).to_have_text("▼ −Inf × 1, step 57")
    missing = page.locator(".missing-list li").filter(has_text="ratio.ess")
    expect(missing).to_contain_text("missing")
    expect(missing).to_contain_text("the trainer does not compute old log-probs")
    expect(card(page, "ratio.ess")).to_have_count(0)
    assert drawn(page, "gradient.norm", "NaN") == [41, 57]
    assert drawn(page, "gradient.norm", "+Inf") == [60]
    assert drawn(page, "policy.loss", "−Inf") == [57]
    labels = gradient.locator(".y2tick text, .ytick text").all_text_contents()
    assert {"NaN", "+Inf"} <= set(labels)
    points = gradient.locator(".scatterlayer .points path.point")
    assert len(set(points.evaluate_all("all => all.map((p) => p.getAttribute('d'))"))) >= 2


def test_new_steps_arrive_without_a_reload_over_one_socket(site: Site, open_page: OpenPage) -> None:
    page = open_page(site.url, RUN_PAGE)
    shown(page, "reward.mean")
    expect(page.locator("#live-word")).to_have_text("Live")
    page.evaluate("window.stayed = true")
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))

    for step in range(120, 123):
        advance(site, step)
    expect(page.locator(".fact .big")).to_have_text("122")
    until(page, lambda: drawn(page, "reward.mean", "value")[-1] == 122)
    until(page, lambda: drawn(page, "kl.pull_ratio", "firing")[-1] == 122)
    assert drawn(page, "reward.mean", "value") == list(range(123))
    assert site.sockets >= 1
    assert [url for url in asked if "_dash-update-component" in url] == []
    assert page.evaluate("window.stayed")
    page.evaluate("for (let i = 0; i < 99; i++) window.dash_clientside.set_props('beat', { data: null })")
    until(page, lambda: page.evaluate("window.dash_stores[0].getState().history.past.length") < 9)


def test_a_nan_that_arrives_live_is_marked(site: Site, open_page: OpenPage) -> None:
    page = open_page(site.url, RUN_PAGE)
    expect(shown(page, "policy.entropy").locator(".kind")).to_have_count(0)
    advance(site, 120, {"policy.entropy": math.nan})
    expect(card(page, "policy.entropy").locator(".kind.nan")).to_have_text("✕ NaN × 1, step 120")
    expect(card(page, "policy.entropy").locator(".now")).to_have_text("NaN")


def test_a_metric_that_begins_late_gets_its_chart(site: Site, open_page: OpenPage) -> None:
    page = open_page(site.url, RUN_PAGE)
    shown(page, "policy.entropy")
    site.fake.missing.clear()
    advance(site, 120, {"ratio.ess": 0.9})
    shown(page, "ratio.ess")
    expect(page.locator(".missing-list")).to_have_count(0)


def test_an_approval_sends_the_edited_value_in_the_persons_name(site: Site, open_page: OpenPage) -> None:
    page = open_page(site.url, RUN_PAGE)
    decision = page.locator(".decision")
    expect(decision).to_contain_text("Set the KL coefficient")
    expect(decision).to_contain_text("allowed 0.01 to 2")
    decision.locator("summary", has_text="Approve").click()
    decision.locator("input[type=number]").fill("0.05")
    decision.get_by_role("button", name="Yes, approve").click()
    expect(page.locator(".decision")).to_have_count(0)
    assert site.fake.calls == [("POST", "/api/v1/commands/c-1/approve", {"argument": 0.05})]
    expect(page.locator("#verdict")).to_contain_text("Approved")
    expect(page.locator(".commands")).to_contain_text("Waits for the trainer")


def test_a_denial_is_sent_and_the_proposal_goes(site: Site, open_page: OpenPage) -> None:
    page = open_page(site.url, RUN_PAGE)
    page.locator(".decision summary", has_text="Deny").click()
    page.get_by_role("button", name="Yes, deny").click()
    expect(page.locator(".decision")).to_have_count(0)
    assert site.fake.commands["c-1"].state is CommandState.DENIED


def test_a_refusal_is_said_in_the_services_own_words(site: Site, open_page: OpenPage) -> None:
    site.fake.commands["c-1"] = replace(site.fake.commands["c-1"], bounds=None)
    page = open_page(site.url, RUN_PAGE)
    page.locator(".decision summary", has_text="Approve").click()
    page.locator(".decision input[type=number]").fill("3")
    page.get_by_role("button", name="Yes, approve").click()
    expect(page.locator("#verdict")).to_contain_text("Out of bounds")
    expect(page.locator("#verdict")).to_contain_text("the argument must lie in 0.01 to 2")


def test_what_a_person_types_survives_new_steps(site: Site, open_page: OpenPage) -> None:
    page = open_page(site.url, RUN_PAGE)
    shown(page, "reward.mean")
    page.locator(".decision summary", has_text="Approve").click()
    page.locator(".decision input[type=number]").fill("0.07")
    advance(site, 120)
    expect(page.locator(".fact .big")).to_have_text("120")
    expect(page.locator(".decision input[type=number]")).to_have_value("0.07")


def test_names_and_completions_are_text_and_never_markup(site: Site, open_page: OpenPage) -> None:
    site.fake.runs[RUN] = replace(site.fake.runs[RUN], name="<img src=x onerror=alert(1)>", reason="<b>bold</b>")
    page = open_page(site.url, RUN_PAGE)
    expect(page.locator("h1")).to_have_text("<img src=x onerror=alert(1)>")
    expect(page.locator(".run-head .reason")).to_contain_text("<b>bold</b>")
    expect(page.locator(".completion").first).to_contain_text("<script>alert(1)</script>")
    shown(page, "my.own <b>score</b>")
    assert page.locator("main img, main script, .reason b").count() == 0


def test_broken_and_invisible_characters_of_a_completion_are_visible(site: Site, open_page: OpenPage) -> None:
    page = open_page(site.url, RUN_PAGE)
    worst = page.locator("article.text").first
    expect(worst).to_contain_text("2 broken sequences")
    expect(worst.locator("mark")).to_have_text(["\ufffd", "\ufffd", "[U+200B]", "[U+0007]", "[U+202E]"])


def test_alerts_say_what_since_when_against_what_and_what_to_do(site: Site, open_page: OpenPage) -> None:
    page = open_page(site.url, RUN_PAGE)
    first = page.locator("article.alert").first
    expect(first).to_contain_text("Critical")
    expect(first).to_contain_text("kl.pull_ratio 1.53, threshold 1, since step 88")
    expect(first).to_contain_text("What to do: Lower beta")
    expect(page.locator("article.alert.past")).to_have_count(1)
    first.get_by_role("button", name="I have seen it").click()
    expect(first).to_contain_text("Seen by anna")


def test_dormant_rules_are_listed_with_their_reason(site: Site, open_page: OpenPage) -> None:
    page = open_page(site.url, RUN_PAGE)
    page.get_by_text("1 rule cannot run here").click()
    expect(page.locator(".reasons").filter(has_text="ratio_extreme")).to_contain_text("ratio.ess is missing")


def test_a_drag_zooms_every_chart_and_stands_in_the_address(site: Site, open_page: OpenPage) -> None:
    page = open_page(site.url, RUN_PAGE)
    drag = grab(page, "reward.mean", 0.25)
    drag(0.75)
    page.mouse.up()
    page.wait_for_url(re.compile(r"from=\d+&to=\d+"))
    until(page, lambda: (drawn(page, "kl.k3", "value") or [0])[0] > 20)
    assert drawn(page, "kl.k3", "value")[-1] < 100
    page.get_by_role("button", name="Back to the whole run").click()
    until(page, lambda: drawn(page, "kl.k3", "value")[0] == 0)
    assert "from=" not in page.url


def test_a_drag_under_which_the_charts_must_be_made_anew_zooms_all_the_same(
    site: Site, open_page: OpenPage
) -> None:
    page = open_page(site.url, RUN_PAGE)
    drag = grab(page, "reward.mean", 0.25)
    drag(0.5)
    advance(site, 120, {"new.metric": 1.0})
    expect(page.locator(".fact .big")).to_have_text("120")
    drag(0.75)
    page.mouse.up()
    page.wait_for_url(re.compile(r"from=\d+&to=\d+"))
    shown(page, "new.metric")
    until(page, lambda: (drawn(page, "kl.k3", "value") or [0])[0] > 20)
    assert drawn(page, "kl.k3", "value")[-1] < 100


def test_an_address_with_a_range_opens_at_that_range(site: Site, open_page: OpenPage) -> None:
    page = open_page(site.url, f"{RUN_PAGE}?from=30&to=60&closed=text,progress,rlvitals")
    shown(page, "reward.mean")
    assert drawn(page, "reward.mean", "value") == list(range(30, 61))
    expect(card(page, "text.never_trained_rate")).to_have_count(0)
    page.get_by_role("button", name=re.compile("Text health")).click()
    shown(page, "text.never_trained_rate")


def test_all_attempts_of_a_run_can_be_chosen(site: Site, open_page: OpenPage) -> None:
    attempts = (
        AttemptView(id="a0", ordinal=1, started_at=START, first_step=0, last_step=40),
        AttemptView(id="a1", ordinal=2, started_at=START, first_step=30, last_step=119),
    )
    site.fake.runs[RUN] = replace(site.fake.runs[RUN], attempts=attempts)
    page = open_page(site.url, RUN_PAGE)
    shown(page, "reward.mean")
    page.locator(".choice.attempt summary").click()
    page.get_by_role("button", name="Attempt 1: steps 0 to 40").click()
    page.wait_for_url(re.compile("attempt=a0"))


def test_the_theme_follows_the_system_can_be_switched_and_is_kept(site: Site, open_page: OpenPage) -> None:
    page = open_page(site.url, RUN_PAGE, scheme="dark")
    shown(page, "reward.mean")
    root = page.locator("html")
    expect(root).to_have_attribute("data-theme", "dark")
    page.get_by_role("button", name="Switch between light and dark").click()
    expect(root).to_have_attribute("data-theme", "light")
    page.reload()
    expect(root).to_have_attribute("data-theme", "light")
    shown(page, "reward.mean")


@pytest.mark.parametrize("path", [RUN_PAGE, "/ui/"])
def test_a_phone_needs_no_sideways_scrolling(site: Site, open_page: OpenPage, path: str) -> None:
    page = open_page(site.url, path, width=390)
    expect(page.locator("main h1")).to_be_visible()
    if path == RUN_PAGE:
        shown(page, "reward.mean")
    assert page.evaluate("document.documentElement.scrollWidth") <= 390


def test_the_first_visit_teaches_the_one_line_and_a_run_appears_by_itself(bare: Site, open_page: OpenPage) -> None:
    page = open_page(bare.url, "/ui/")
    expect(page.locator(".first-run")).to_contain_text("rlvitals.attach(trainer")
    bare.do(lambda: bare.fake.add_run("fresh", name="fresh run"))
    row = page.locator(".runs-table tr.run")
    expect(row).to_contain_text("fresh run")
    expect(row).to_contain_text("Healthy")
    bare.do(
        lambda: bare.fake.add_run("fresh", name="fresh run", light=Light.RED, reason="NaN in the loss", firing=1)
    )
    expect(row).to_contain_text("Unhealthy")
    expect(row).to_contain_text("NaN in the loss")
    row.get_by_role("link").click()
    page.wait_for_url(re.compile("/ui/run/fresh"))
    expect(page.locator("h1")).to_have_text("fresh run")


def test_a_stranger_is_sent_to_the_sign_in(site: Site, open_page: OpenPage) -> None:
    context = open_page(site.url, RUN_PAGE).context
    context.clear_cookies()
    answer = context.request.get(f"{site.url}{RUN_PAGE}", max_redirects=0)
    assert (answer.status, answer.headers["location"]) == (303, "/ui/login")


def test_a_page_says_when_the_service_is_away_and_goes_on_when_it_is_back(site: Site, open_page: OpenPage) -> None:
    page = open_page(site.url, RUN_PAGE)
    shown(page, "reward.mean")
    site.fake.down = True
    site.do()
    expect(page.locator("#live-word")).to_have_text("Reconnecting")
    site.fake.down = False
    advance(site, 120)
    expect(page.locator(".fact .big")).to_have_text("120")
    expect(page.locator("#live-word")).to_have_text("Live")


def test_the_control_page_heals_as_well_and_leaves_what_is_typed_alone(site: Site, open_page: OpenPage) -> None:
    page = open_page(site.url, "/ui/control")
    page.locator(".decision summary", has_text="Approve").click()
    page.locator(".decision input[type=number]").fill("0.07")
    site.fake.down = True
    site.do()
    expect(page.locator("#live-word")).to_have_text("Reconnecting")
    site.fake.down = False
    more = replace(site.fake.commands["c-0"], id="c-9", state=CommandState.REFUSED, reason="beta is 0")
    site.do(lambda: site.fake.commands.update({"c-9": more}))
    expect(page.locator(".commands")).to_contain_text("beta is 0")
    expect(page.locator("#live-word")).to_have_text("Live")
    expect(page.locator(".decision input[type=number]")).to_have_value("0.07")


def test_a_run_that_does_not_exist_is_said_to_be_missing(site: Site, open_page: OpenPage) -> None:
    page = open_page(site.url, "/ui/run/nobody")
    expect(page.locator("main")).to_contain_text("no run 'nobody'")


def blind_hooks() -> HooksView:
    rows = (
        HookView(
            hook="batch",
            target="PPOTrainer._compute_metrics",
            gives="text, lengths, rewards and groups",
            state=HookState.BLIND,
        ),
        HookView(
            hook="loss",
            target="losses.ppo_loss",
            gives="importance ratios",
            state=HookState.FAILING,
            why="KeyError: <b>'old_log_probs'</b>",
        ),
        HookView(hook="log", target="Tracking.log", gives="scalars", state=HookState.SEEN, seen=12),
        HookView(
            hook="dump", target="PPOTrainer._dump", gives="", state=HookState.ABSENT, why="no dump", optional=True
        ),
    )
    table = HookTableView(attempt="a1", writer="main", at=START, framework="verl", version="0.9.1", hooks=rows)
    return HooksView(
        run=RUN,
        attempt="a1",
        well=False,
        summary="1 of 3 hooks see: hook loss of verl 0.9.1 fails (KeyError: <b>'old_log_probs'</b>)",
        advice="Run `rlvitals doctor` in the job's environment.",
        tables=(table,),
    )


def test_hooks_that_turn_blind_are_told_live_and_fold_away_once_they_see(site: Site, open_page: OpenPage) -> None:
    page = open_page(site.url, RUN_PAGE)
    shown(page, "reward.mean")
    expect(page.locator("details.hooks")).to_have_count(0)

    site.do(lambda: setattr(site.fake, "hooks", blind_hooks()))
    panel = page.locator("details.hooks")
    expect(panel.locator(".hook-rows li").nth(0)).to_be_visible()
    expect(panel.locator("summary")).to_contain_text("1 of 3 hooks see")
    expect(panel.locator(".hook-rows li").nth(0)).to_contain_text("Blind")
    expect(panel.locator(".hook-rows li").nth(1)).to_contain_text("KeyError: <b>'old_log_probs'</b>")
    expect(panel).to_contain_text("What to do")

    seeing = tuple(replace(hook, state=HookState.SEEN, seen=4) for hook in blind_hooks().tables[0].hooks[:3])
    table = replace(blind_hooks().tables[0], hooks=seeing)
    well = HooksView(run=RUN, attempt="a1", well=True, summary="3 of 3 hooks see", tables=(table,))
    site.do(lambda: setattr(site.fake, "hooks", well))
    expect(panel.locator("summary")).to_contain_text("3 of 3 hooks see")
    expect(panel.locator(".hook-rows")).to_be_hidden()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_hooks_and_checkpoints_fit_a_phone(site: Site, open_page: OpenPage, scheme: str) -> None:
    site.fake.hooks = blind_hooks()
    site.fake.checkpoints = [
        EventView(attempt="a1", at=START, kind="checkpoint", step=100, payload={"folder": "/runs/" + "long" * 40})
    ]
    page = open_page(site.url, RUN_PAGE, width=390, scheme=scheme)
    expect(page.locator("details.hooks .hook-rows li").nth(0)).to_be_visible()
    expect(page.locator(".checkpoints li")).to_contain_text("step 100")
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
