"""The runbooks' generated parts: a picture of the alert's own scenario, what others found, how to silence it."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree
from functools import cache
from pathlib import Path

import pytest

from docs import generate, runbook_causes, runbook_pages
from docs.runbook_causes import load_causes, read_causes
from docs.runbook_pages import LEARNED, NO_REPORT, RUNBOOKS, own_rule, pages, put, reported
from docs.runbook_pictures import CURVE, FIRES, LIMIT, TEXT, describe, draw
from docs.runbook_scenarios import Firing, Origin, Shown, Threshold, shown
from rlvitals.contract.alert import Severity
from rlvitals_monitor.matcher import Matcher
from rlvitals_monitor.rules.document import RuleFileError
from rlvitals_monitor.rules.loader import load_over, load_rules

RULES = load_rules()
ALERTS = sorted({rule.alert for rule in RULES})
MOST_BYTES = 6 * 1024
CAUSE = "kl_explosion:\n  - cause: {cause}\n    seen: {seen}\n    references: [{reference}]\n"


@cache
def made() -> dict[str, str]:
    return pages()


def picture_of(*values: float | None, threshold: float | None = None) -> Shown:
    return Shown(
        alert="a",
        name="n",
        file="f.yaml",
        metric="kl.k3",
        points=tuple(enumerate(values, start=1)),
        firings=(Firing(severity=Severity.WARNING, step=len(values), resolved=None),),
        threshold=None if threshold is None else Threshold(value=threshold, origin=Origin.RULE),
    )


def cause(text: str = "c", seen: str = "1", reference: str = "a/b#1") -> str:
    return CAUSE.format(cause=text, seen=seen, reference=reference)


def test_the_pages_and_pictures_are_what_scenarios_and_causes_say() -> None:
    assert [name for name in generate.stale() if name.startswith("runbooks/")] == []


@pytest.mark.parametrize("alert", ALERTS)
def test_every_alert_has_a_picture_with_words_and_says_how_to_silence_it(alert: str) -> None:
    page = (RUNBOOKS / f"{alert}.md").read_text("utf-8")
    (words,) = re.findall(rf"^!\[(.+)\]\(images/{alert}\.svg\)$", page, re.MULTILINE)
    for said, where in ((f"{alert} (", words), ("fires at step", words), (f"off: [{alert}]", page)):
        assert said in where
    assert f"rule!={alert}" in page
    assert f"rlvitals silence add 'rule={alert}' run=RUN --for 2h" in page
    drawn = made()[f"runbooks/images/{alert}.svg"]
    assert len(drawn.encode()) <= MOST_BYTES
    assert "fires at step" in "".join(ElementTree.fromstring(drawn).itertext())


def test_the_page_of_learned_bands_says_how_to_silence_them() -> None:
    assert "rule!=band_*" in made()[f"runbooks/{LEARNED}.md"]


@pytest.mark.parametrize("alert", ALERTS)
def test_the_rule_to_change_is_the_shipped_one_and_what_is_off_is_gone(alert: str) -> None:
    severity = shown()[alert].firings[0].severity
    (offered,) = (r for r in load_over(own_rule(alert, severity)) if (r.alert, r.severity) == (alert, severity))
    (shipped,) = (r for r in RULES if (r.alert, r.severity) == (alert, severity))
    same = ("fingerprint", "needs", "inhibited_by", "keep_firing_for", "summary", "description")
    assert [getattr(offered, name) for name in same] == [getattr(shipped, name) for name in same]
    assert alert not in {rule.alert for rule in load_over(f"off: [{alert}]\n")}
    assert Matcher.read(f"rule!={alert}").negated


def test_what_silences_in_one_channel_and_who_looks_after_it_is_there() -> None:
    """The page names a heading, a route and a button: each exists."""
    root = RUNBOOKS.parents[1]
    channels = (root / "docs/notify.md").read_text("utf-8")
    assert "# Channels: where alerts go\n" in channels
    assert "\n## Silences and maintenance\n" in channels
    assert '"/alerts/{alert}/acknowledge"' in (root / "monitor/rlvitals_monitor/api/alerts.py").read_text("utf-8")
    assert '"I have seen it"' in (root / "dashboard/rlvitals_dashboard/alert_panel.py").read_text("utf-8")


def test_nan_infinities_and_a_missing_value_are_drawn_and_said_apart() -> None:
    one = picture_of(1.0, float("nan"), 2.0, float("inf"), 1.0, float("-inf"), None, 1.0)
    words = describe(one)
    for said in ("NaN on 1 step", "; Inf on 1 step", "-Inf on 1 step", "missing on 1 step"):
        assert said in words
    assert re.findall(r">(NaN|Inf|-Inf)</text>", draw(one)) == ["NaN", "Inf", "-Inf"]


def test_where_no_number_was_measured_none_stands_at_the_axis() -> None:
    words = re.findall(r">([^<]+)</text>", draw(picture_of(float("nan"), None, float("nan"))))
    assert words == ["kl.k3", "step 1", "3", "NaN", "NaN", "warning: fires at step 3"]


@pytest.mark.parametrize("alert", ALERTS)
def test_the_metric_and_its_threshold_have_room_beside_each_other(alert: str) -> None:
    """Letters of this size are 6.5 wide on average, bold ones 7.5."""
    legend = re.findall(r'y="18"[^>]+>([^<]+)<', draw(shown()[alert]))
    assert sum(len(words) * width for words, width in zip(legend, (7.5, 6.5), strict=False)) < 562


@pytest.mark.parametrize("values", [(float("nan"),), (None, 0.0), (0.0, 0.0), (-3.0,), (1e300, -1e300), (5e-324,)])
def test_every_series_can_be_drawn_within_the_picture(values: tuple[float | None, ...]) -> None:
    drawn = draw(picture_of(*values, threshold=0.0))
    assert not re.search(r'["M L]-?(nan|inf)\b', drawn)
    assert all(-1 <= float(place) <= 640 for place in re.findall(r'\b[xy][12]?="([^"]+)"', drawn))


def test_a_name_in_a_picture_is_text_and_nothing_else() -> None:
    hostile = '"><script>alert(1)</script>&'
    one = picture_of(1.0)
    drawn = draw(Shown(**{name: getattr(one, name) for name in one.__slots__} | {"metric": hostile}))
    assert "<script" not in drawn
    assert hostile in "".join(ElementTree.fromstring(drawn).itertext())


@pytest.mark.parametrize("colour", sorted({CURVE, TEXT, LIMIT, *FIRES.values()}))
@pytest.mark.parametrize("page", ["#ffffff", "#0d1117"])
def test_each_colour_stands_out_from_a_light_and_a_dark_page(colour: str, page: str) -> None:
    light, dark = sorted(map(luminance, (colour, page)), reverse=True)
    assert (light + 0.05) / (dark + 0.05) >= 4.0


def luminance(colour: str) -> float:
    """Relative luminance as WCAG 2 defines it."""
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def test_the_shipped_causes_are_of_alerts_and_each_has_a_reference() -> None:
    causes = load_causes([*ALERTS, LEARNED])
    assert all(one.references for several in causes.values() for one in several)


def test_the_most_frequent_cause_comes_first_with_links_and_what_helped() -> None:
    more = "  - {cause: often, seen: 9, references: [a/b#2, c-d/e.f#3], helped: less}\n"
    (found,) = read_causes(cause("rare") + more, "c.yaml", ALERTS).values()
    text = reported(found)
    assert text.index("1. often (seen 9 times") < text.index("2. rare (seen 1 time:")
    assert "[c-d/e.f#3](https://github.com/c-d/e.f/issues/3)" in text
    assert text.endswith("## What helped others\n\n- For 1: less")
    assert reported(()).endswith(NO_REPORT)


def test_a_cause_is_shown_as_it_was_written() -> None:
    (found,) = read_causes(cause("'<b>x</b> [y](javascript:z) <!-- end --> `a <b>`'"), "c.yaml", ALERTS).values()
    shown_text = reported(found)
    assert r"\<b\>x\</b\> \[y\](javascript:z) \<!-- end --\> `a <b>`" in shown_text
    assert runbook_pages.END not in shown_text


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        (
            "kl_explosoin: []\n",
            1,
            "expected the name of an alert, got 'kl_explosoin'; did you mean 'kl_explosion'",
        ),
        (cause(seen="0"), 3, "expected a whole number from 1"),
        (cause(seen="-1"), 3, "expected a whole number"),
        (cause(seen=".nan"), 3, "expected a whole number"),
        (cause(reference="'https://evil.example/x#1'"), 4, "expected a reference such as owner/repo#123"),
        (cause(reference="'a/b#1)](javascript:x'"), 4, "expected a reference"),
        (cause(reference="'a/b#0'"), 4, "expected a reference"),
        (cause(reference=""), 4, "expected at least one reference"),
        (cause(reference="a/b#1, a/b#1"), 4, "expected each reference once"),
        (cause(text="''"), 2, "expected 1 to 1000 characters"),
        (cause(text=f"'{'x' * 1001}'"), 2, "expected 1 to 1000 characters"),
        (cause(text='"a\\u202eb"'), 2, "expected characters that can be seen"),
        (cause(text="[x]"), 2, "expected a text, got a list"),
        (cause() + "    why: x\n", 5, "expected one of cause, seen, references, helped, got 'why'"),
        (cause() + "    seen: 2\n", 5, "expected 'seen' once"),
        ("kl_explosion: {cause: x}\n", 1, "expected a list, got a mapping"),
        ("kl_explosion: &a [*a]\n", 1, "expected a mapping"),
        ("- kl_explosion\n", 1, "expected a mapping, got a list"),
        ("kl_explosion: [\n", 2, "expected YAML"),
        ("[" * 5000, 1, "nests less deep"),
    ],
)
def test_a_hostile_file_of_causes_is_told_with_file_and_line(text: str, line: int, said: str) -> None:
    with pytest.raises(RuleFileError) as told:
        read_causes(text, "c.yaml", ALERTS)
    assert told.value.problems[0].startswith(f"c.yaml:{line}: ")
    assert said in told.value.problems[0]


def test_a_wrong_file_of_causes_ends_the_check_with_its_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    wrong = tmp_path / "runbook_causes.yaml"
    wrong.write_text(cause(seen="many"))
    monkeypatch.setattr(runbook_causes, "CAUSES", wrong)
    assert generate.main(["--check"]) == 1
    assert capsys.readouterr().err.startswith("docs/runbook_causes.yaml:3: expected a whole number")


def test_a_part_is_put_once_and_what_people_wrote_stays() -> None:
    page = "# a\n\nwritten\n\n## What to check\n\nmore\n"
    once = put(page, "p", "one", before="## ")
    assert once == "# a\n\nwritten\n\n<!-- generated: p -->\none\n<!-- end -->\n\n## What to check\n\nmore\n"
    assert put(once, "p", "one", before="## ") == once
    assert put(once, "p", "two", before="## ") == once.replace("one", "two")
    with pytest.raises(ValueError, match="expected <!-- end --> after"):
        put("<!-- generated: p -->\n", "p", "x", before="")


def test_a_changed_page_a_changed_picture_and_one_of_no_alert_are_stale(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(generate, "HERE", tmp_path)
    monkeypatch.setattr(runbook_pages, "RUNBOOKS", tmp_path / "runbooks")
    assert generate.main([]) == 0
    assert generate.stale() == []
    (tmp_path / "runbooks/images/kl_drift.svg").write_text("<svg/>")
    (tmp_path / "runbooks/images/gone.svg").write_text("<svg/>")
    page = tmp_path / "runbooks/truncation.md"
    page.write_text(page.read_text("utf-8").replace("off: [truncation]", "off: [everything]"), "utf-8")
    told = ["runbooks/images/gone.svg", "runbooks/images/kl_drift.svg", "runbooks/truncation.md"]
    assert sorted(generate.stale()) == told
    assert generate.main([]) == 0
    assert generate.stale() == []
