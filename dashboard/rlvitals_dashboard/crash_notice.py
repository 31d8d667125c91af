"""What a page says when the service stumbled over one of its callbacks: that it did, and that the page goes on.

The error itself goes to the service's log, since it may hold what not everybody may see. The browser takes the
notice away once nothing has stumbled for a while (assets/connection.js).
"""

from __future__ import annotations

import logging
from datetime import datetime, timezone
from typing import Any

from dash import ctx, html, no_update, set_props

from rlvitals_dashboard.api import ApiError
from rlvitals_dashboard.components import Component, when
from rlvitals_dashboard.failed_page import failed_page
from rlvitals_dashboard.language import t

PLACE = "crash"

log = logging.getLogger(__name__)


def crash_place() -> Component:
    return html.Div(id=PLACE, role="alert")


def tell_crash(error: Exception) -> None:
    """Of any callback: its outputs stay as they are."""
    log.error("a callback of a page failed", exc_info=error)
    set_props(PLACE, {"children": crash_notice(datetime.now(timezone.utc))})


def crash_page(error: Exception, prefix: str) -> tuple[Any, ...]:
    """In place of a whole page, which is asked for again; all else that the callback says stays as it is."""
    log.error("a page could not be made", exc_info=error)
    told = ApiError(t("This page could not be made"), t("The service stumbled over it; its log says why."))
    routed = {"path": ctx.inputs.get("url.pathname"), "at": datetime.now(timezone.utc).timestamp()}
    said = {("page", "children"): failed_page(told, prefix, ""), ("routed", "data"): routed}
    return tuple(said.get((out["id"], out["property"]), no_update) for out in ctx.outputs_list)


def crash_notice(at: datetime) -> Component:
    words = t("The service's log says why. It is tried again; until then a part of this page may be old.")
    said = [html.Strong(t("The service stumbled over a part of this page")), " ", when(at), html.P(words)]
    return html.Div(said, className="notice tone-warning")
