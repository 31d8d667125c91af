"""The rule document that is edited while the service runs: checked, in force at once, every version kept."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import Field

from rlvitals.contract.rulebook import EditedRulesView, RuleCheckView
from rlvitals_monitor.alerts.board import check_view, fault_view
from rlvitals_monitor.api.deps import Admin, ContractResponse, LiveDep, NowDep, Reader, StoreDep
from rlvitals_monitor.api.rules import RuleBookDep, RulesDep
from rlvitals_monitor.errors import BadRequest, Conflict
from rlvitals_monitor.live import EVERYTHING
from rlvitals_monitor.rules.document import RuleFileError
from rlvitals_monitor.store import edited_rules
from rlvitals_monitor.store.audit import append_audit
from rlvitals_monitor.store.edited_rules import WHY_LIMIT, Version

TEXT_MAX = 200_000
VERSIONS_MAX = 50

router = APIRouter(prefix="/api/v1", tags=["rules"])


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """``text`` is YAML as in a rule file; empty: no edited rules."""

    text: Annotated[str, Field(max_length=TEXT_MAX)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Edit:
    """``base`` is the number of the version that was edited: where somebody was faster, nothing is overwritten."""

    text: Annotated[str, Field(max_length=TEXT_MAX)]
    base: Annotated[int, Field(ge=0)]
    why: Annotated[str, Field(max_length=WHY_LIMIT)] = ""


@router.get("/rules/edited", response_model=EditedRulesView, summary="The edited rule document in force")
def read_edited(_who: Reader, store: StoreDep) -> ContractResponse:
    """It lies over the catalogue and the operator's files; ``number`` 0: there is none."""
    with store.read() as connection:
        found = edited_rules.newest(connection, 1)
    return ContractResponse(_view(found[0]) if found else EditedRulesView())


@router.get("/rules/edited/versions", response_model=list[EditedRulesView], summary="Its versions, newest first")
def list_versions(
    _who: Reader, store: StoreDep, limit: Annotated[int, Query(ge=1, le=VERSIONS_MAX)] = VERSIONS_MAX
) -> ContractResponse:
    with store.read() as connection:
        return ContractResponse([_view(version) for version in edited_rules.newest(connection, limit)])


@router.post("/rules/check", response_model=RuleCheckView, summary="What is wrong with a rule document")
def check_draft(body: Draft, _who: Reader, book: RuleBookDep, rules: RulesDep) -> ContractResponse:
    """As if it were in force over the catalogue and the operator's files; writes nothing."""
    try:
        return ContractResponse(check_view(rules, book.over(body.text)))
    except RuleFileError as error:
        return ContractResponse(fault_view(error.problems, len(rules)))


@router.put("/rules/edited", response_model=EditedRulesView, summary="Put a rule document in force")
def put_in_force(
    body: Edit, who: Admin, store: StoreDep, book: RuleBookDep, live: LiveDep, now: NowDep
) -> ContractResponse:
    """From the next step on, in all processes of the service. Open alerts of rules that are gone end."""
    try:
        told = check_view(book.refresh(now), book.over(body.text))
    except RuleFileError as error:
        raise BadRequest(str(error), field="text") from None
    with store.begin() as connection:
        number = edited_rules.add(connection, body.base, body.text, body.why.strip(), who.name, now)
        if number is None:
            raise Conflict("somebody put other rules in force meanwhile: look at them and try again", field="base")
        append_audit(connection, at=now, who=who.name, what="rules edited", detail=_words(number, told, body.why))
        made = edited_rules.find(connection, number)
    book.refresh(now)
    live.publish(EVERYTHING)
    return ContractResponse(EditedRulesView() if made is None else _view(made))


def _words(number: int, told: RuleCheckView, why: str) -> str:
    changes = {"added": told.added, "changed": told.changed, "removed": told.removed}
    said = "; ".join(f"{verb} {', '.join(keys)}" for verb, keys in changes.items() if keys)
    return f"version {number}: {said or 'no rule differs'}" + (f" ({why.strip()})" if why.strip() else "")


def _view(version: Version) -> EditedRulesView:
    return EditedRulesView(
        number=version.number,
        text=version.text,
        why=version.why,
        changed_at=version.changed_at,
        changed_by=version.changed_by,
    )
