"""The Dash application on an existing FastAPI app: the table of pages, and the door."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping
from functools import partial, reduce
from time import time
from typing import Any, TypeAlias
from urllib.parse import parse_qsl, unquote

from dash import ALL, ClientsideFunction, Dash, Input, Output, State, html
from fastapi import FastAPI
from fastapi.responses import JSONResponse

from rlvitals_dashboard import deeds, nav, problem_banner, run_browser
from rlvitals_dashboard.api import Api, ApiError
from rlvitals_dashboard.bundle import ASSETS, add_bundles, script_tag, style_tag
from rlvitals_dashboard.chart_route import add_chart_route
from rlvitals_dashboard.components import Component, visible
from rlvitals_dashboard.crash_notice import crash_page, tell_crash
from rlvitals_dashboard.failed_page import failed_page, no_such_page
from rlvitals_dashboard.gate import Gate
from rlvitals_dashboard.language import language, t, with_language
from rlvitals_dashboard.nav import PREFIX
from rlvitals_dashboard.page_policy import PagePolicy, policy
from rlvitals_dashboard.pages import audit as audit_page
from rlvitals_dashboard.pages import channels as channels_page
from rlvitals_dashboard.pages import command as command_page
from rlvitals_dashboard.pages import compare as compare_page
from rlvitals_dashboard.pages import control as control_page
from rlvitals_dashboard.pages import imports as imports_page
from rlvitals_dashboard.pages import incidents as incidents_page
from rlvitals_dashboard.pages import open_incidents as open_incidents_page
from rlvitals_dashboard.pages import policies as policies_page
from rlvitals_dashboard.pages import rule as rule_page
from rlvitals_dashboard.pages import rule_edit as rule_edit_page
from rlvitals_dashboard.pages import rules as rules_page
from rlvitals_dashboard.pages import run as run_page
from rlvitals_dashboard.pages import runbook as runbook_page
from rlvitals_dashboard.pages import runs as runs_page
from rlvitals_dashboard.pages import service as service_page
from rlvitals_dashboard.pages import settings as settings_page
from rlvitals_dashboard.pages import silences as silences_page
from rlvitals_dashboard.pages import texts as texts_page
from rlvitals_dashboard.shell import shell
from rlvitals_dashboard.theme import css_variables

COMMAND, RULE, RUNBOOK = "control/command/", "rules/rule/", "runbook/"
_WIRE = re.compile(r"(?:_dash-ws-callback|dash-ws-worker[\w.-]*\.js(?:\?[\w=.&-]*)?)(?=\")")
"""Addresses of the socket and of its worker in Dash's configuration."""
_INDEX = """<!DOCTYPE html>
<html lang="__LANGUAGE__" data-theme="light">
<head>
{%metas%}
<meta name="color-scheme" content="light dark">
<title>{%title%}</title>
<link rel="icon" type="image/svg+xml" href="__PREFIX__assets/icon.svg">
<style>__VARIABLES__</style>
{%css%}
__STYLES__
<script src="__PREFIX__assets/before-paint.js"></script>
</head>
<body>
<p id="incomplete" class="notice" role="status" hidden>__INCOMPLETE__</p>
{%app_entry%}
<footer>{%config%}__SCRIPTS__{%scripts%}{%renderer%}</footer>
</body>
</html>"""


def create_dash(server: FastAPI, api: Api, prefix: str = PREFIX) -> Dash:
    """Puts the dashboard under ``prefix`` of ``server``. Call it after all other routes are there."""
    options: Any = {"server": server, "update_title": None}
    app = Dash(
        __name__,
        backend="fastapi",
        url_base_pathname=prefix,
        assets_folder=str(ASSETS),
        assets_ignore=r".*",
        title="RL Vitals",
        suppress_callback_exceptions=True,
        serve_locally=True,
        index_string=_index(prefix),
        meta_tags=[{"name": "viewport", "content": "width=device-width, initial-scale=1"}],
        websocket_inactivity_timeout=0,
        add_log_handler=False,
        on_error=tell_crash,
        **options,
    )
    app.layout = lambda: shell(prefix)
    app.renderer = f"if (window.DashRenderer) {{ {app.renderer} }} else window.vitalsIncomplete();"
    add_bundles(server, prefix)
    add_chart_route(server, api, prefix)
    _name_the_language(app)
    _register_router(app, api, prefix)
    _register_browser(app)
    runs_page.register(app, api, prefix)
    run_page.register(app, api)
    control_page.register(app, api, prefix)
    compare_page.register(app, api, prefix)
    single = (policies_page.HEART, silences_page.HEART, channels_page.HEART)
    for heart in (*single, audit_page.heart(prefix), command_page.heart(prefix), texts_page.heart(prefix)):
        heart.register(app, api)
    for heart in (service_page.HEART, *settings_page.HEARTS.values()):
        heart.register(app, api)
    incidents_page.heart(prefix).register(app, api)
    open_incidents_page.heart(prefix).register(app, api)
    rule_edit_page.register(app, api, prefix)
    imports_page.register(app, api, prefix)
    for heart in (rules_page.heart(prefix), rule_page.heart(prefix)):
        heart.register(app, api)
    deeds.register(app, api)
    nav.register(app, api)
    problem_banner.register(app, api)
    _close_the_rest(server)
    server.add_middleware(Gate, api=api, prefix=prefix)
    server.add_middleware(PagePolicy, policy=policy(app.csp_hashes()), prefix=prefix)
    return app


def _index(prefix: str) -> str:
    """Dash fills in the rest for each document."""
    said = {
        "PREFIX": prefix,
        "VARIABLES": css_variables(),
        "STYLES": style_tag(prefix),
        "SCRIPTS": script_tag(prefix),
    }
    return reduce(lambda text, name: text.replace(f"__{name}__", said[name]), said, _INDEX)


def _name_the_language(app: Any) -> None:
    """Of each document, as it is asked for, and of its socket, which one worker keeps for all tabs."""
    written = app.interpolate_index

    def interpolate(**parts: str) -> str:
        config = _WIRE.sub(lambda found: with_language(found[0]), parts["config"])
        words = t("A file of this page did not come. It is asked for again until all are there.")
        page = str(written(**parts | {"config": config})).replace("__LANGUAGE__", language.get().value, 1)
        return page.replace("__INCOMPLETE__", words, 1)

    app.interpolate_index = interpolate


def _register_router(app: Dash, api: Api, prefix: str) -> None:
    @app.callback(
        Output("page", "children"),
        Output("page", "className"),
        Output("crumbs", "children"),
        Output("nav", "children"),
        Output("routed", "data"),
        Input("url", "pathname"),
        Input("url", "search"),
        Input("retry", "data"),
        on_error=partial(crash_page, prefix=prefix),
    )
    async def route(pathname: str | None, search: str | None, _retry: object) -> tuple[Component, ...]:
        routed = {"path": pathname, "at": time()}
        place = (pathname or prefix)[len(prefix) :].strip("/")
        query = dict(parse_qsl((search or "").lstrip("?"), keep_blank_values=True)[:20])
        rights = await _rights(api)
        links = nav.shared_bar(prefix) if rights == nav.GUEST else nav.bar(prefix, place)
        around = rights, _crumbs(place), links, routed
        try:
            return await _page(api, prefix, place, query), *around
        except ApiError as error:
            return failed_page(error, prefix, place), *around


async def _rights(api: Api) -> str:
    """As a class of the page: for who may do all or much, and while nobody can say, it is none."""
    try:
        me = await api.me()
    except ApiError:
        return ""
    if me.run:
        return nav.GUEST
    return "" if "operate" in me.may else nav.READER


Layout: TypeAlias = Callable[[Api, str, dict[str, str]], Awaitable[Component]]
RunLayout: TypeAlias = Callable[[Api, str, str, dict[str, str]], Awaitable[Component]]
PAGES: Mapping[str, Layout] = {
    "": runs_page.layout,
    "incidents": open_incidents_page.layout,
    "compare": compare_page.layout,
    "control": control_page.layout,
    "control/policies": policies_page.layout,
    "control/silences": silences_page.layout,
    "control/audit": audit_page.layout,
    "channels": lambda api, _prefix, query: channels_page.layout(api, query),
    "rules": rules_page.layout,
    "rules/edit": rule_edit_page.layout,
    "import": imports_page.layout,
    "settings": service_page.layout,
    **{place: partial(settings_page.layout, place) for place in settings_page.HEARTS},
}
RUN_PAGES: Mapping[str, RunLayout] = {
    "": lambda api, _prefix, run, query: run_page.layout(api, run, query),
    "texts": texts_page.layout,
    "incidents": incidents_page.layout,
}
"""By what stands behind the run in the address."""


async def _page(api: Api, prefix: str, place: str, query: dict[str, str]) -> Component:
    if place in PAGES:
        return await PAGES[place](api, prefix, query)
    kind, _, name = place.partition("/")
    run, _, part = name.partition("/")
    if kind == "run" and run and part in RUN_PAGES:
        return await RUN_PAGES[part](api, prefix, unquote(run), query)
    if place.startswith(RULE):
        return await rule_page.layout(api, prefix, place.removeprefix(RULE))
    if place.startswith(RUNBOOK):
        return runbook_page.layout(prefix, place.removeprefix(RUNBOOK))
    if place.startswith(COMMAND):
        return await command_page.layout(api, prefix, unquote(place.removeprefix(COMMAND)))
    return no_such_page(prefix)


def _crumbs(place: str) -> Component:
    kind, _, name = place.partition("/")
    run = unquote(name.partition("/")[0])
    return html.Span(visible(run, 60), className="here") if kind == "run" and run else None


def _register_browser(app: Dash) -> None:
    """What the browser does by itself; the functions are in assets/vitals.js."""

    register: Any = app.clientside_callback

    def does(name: str, *wires: Any) -> None:
        register(ClientsideFunction("vitals", name), *wires)

    does("theme", Output("theme", "data"), Input("theme-toggle", "n_clicks"))
    does("routed", Input("routed", "data"))
    does("beat", Input("beat", "data"))
    does("watch", Input("watch", "n_intervals"), State("pulse", "data"))
    does("pageBeat", Input({"type": "beat", "page": ALL}, "data"), State({"type": "beat", "page": ALL}, "id"))
    pulses = State({"type": "pulse", "page": ALL}, "data"), State({"type": "pulse", "page": ALL}, "id")
    does("pageWatch", Input({"type": "watch", "page": ALL}, "n_intervals"), *pulses)
    does("nudge", Input("done", "data"), *pulses)
    does("query", Input("tried-query", "data"))
    does("toLine", Input({"type": "to-line", "line": ALL}, "n_clicks"))
    deeds.register_browser(register)
    compare_page.register_browser(register)
    runs_page.register_browser(register)
    run_browser.register_browser(register)


def _close_the_rest(server: FastAPI) -> None:
    """At start-up Dash adds a route that answers any unknown path with its page and status 200; this one comes
    before it."""

    async def nothing(path: str) -> JSONResponse:
        problem = {"title": "Not found", "status": 404, "detail": f"there is nothing at /{path[:200]}"}
        return JSONResponse(problem, status_code=404, media_type="application/problem+json")

    server.add_api_route("/{path:path}", nothing, methods=["GET"], include_in_schema=False)
