"""What an edit of the rules would change."""

from __future__ import annotations

from rlvitals_monitor.alerts.board import check_view, fault_view
from rlvitals_monitor.rules.loader import load_rules
from rlvitals_monitor.rules.rule import as_document


def test_every_rule_is_written_as_a_document_that_changes_nothing() -> None:
    rules = load_rules()
    for rule in rules:
        told = load_rules(edited=as_document(rule))
        assert [r.fingerprint for r in told] == [r.fingerprint for r in rules], rule.key
        assert check_view(rules, told).changed == (), rule.key


def test_what_a_rule_says_of_itself_is_a_change_and_where_it_stands_is_none() -> None:
    rules = load_rules()
    text = as_document(rules[0])
    assert check_view(rules, load_rules(edited=f"# moved\n\n{text}")).changed == ()
    told = text.replace("reason: ", "reason: Now ").replace('reason: Now "', 'reason: "Now ')
    assert check_view(rules, load_rules(edited=told)).changed == (rules[0].key,)


def test_a_fault_of_another_file_keeps_its_name() -> None:
    told = fault_view(["/etc/rules.yaml:3: expected a list", "edited:7: expected a text"], 5)
    assert [(f.line, f.words) for f in told.faults] == [
        (0, "/etc/rules.yaml:3: expected a list"),
        (7, "expected a text"),
    ]
