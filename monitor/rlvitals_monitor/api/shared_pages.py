"""What a shared link leads to: a session that shows one run, or a page that says that the link is over."""

from __future__ import annotations

from urllib.parse import quote

from fastapi import APIRouter, Request
from fastapi.responses import RedirectResponse, Response

from rlvitals.contract.access import AccessKind
from rlvitals_monitor import auth
from rlvitals_monitor.access import share_book
from rlvitals_monitor.api.deps import NowDep, StoreDep
from rlvitals_monitor.api.login import HEADERS, caller_of, message_page, set_cookie
from rlvitals_monitor.auth import SHARE_COOKIE
from rlvitals_monitor.store import sessions, shares
from rlvitals_monitor.store.secret import SECRET

GONE = 410

router = APIRouter(include_in_schema=False)


@router.get(shares.PATH + "{secret}")
def open_share(secret: str, request: Request, store: StoreDep, now: NowDep) -> Response:
    """Leads to the view. Who is signed in stays so: this is a cookie of its own."""
    with store.read() as conn:
        share = shares.find(conn, secret, now) if SECRET.fullmatch(secret) else None
    if share is None:
        words = "It may be cut off, or the run was deleted."
        return message_page(request, "This shared link is not known here", words, 404)
    if not share.open:
        why = "was taken back" if share.revoked_at is not None else "has expired"
        return message_page(request, f"This shared link {why}", "Ask whoever sent it for another.", GONE)
    answer = RedirectResponse(f"/ui/run/{quote(share.run, safe='')}{share.view}", 303, HEADERS)
    held = request.cookies.get(SHARE_COOKIE)
    with store.begin() as conn:
        idle = request.app.state.settings.session_idle
        who = None if held is None else auth.principal_by_cookie(conn, held, now, idle)
        if who is not None and who.kind is AccessKind.SHARE:
            if who.subject == share.id:
                return answer
            # A socket that is open by the earlier link would show the run of that one for ever.
            sessions.end(conn, who.session, now)
        entered = share_book.enter(conn, share, caller_of(request), now)
    set_cookie(request, answer, SHARE_COOKIE, entered, (share.expires_at - now).total_seconds())
    return answer
