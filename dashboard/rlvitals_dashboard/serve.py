"""``rlvitals serve``: monitor and dashboard on one app in one process, or the part of it that a role names.

The only module that imports both.
"""

from __future__ import annotations

import argparse
import contextlib
import errno
import gc
import os
import shlex
import signal
import socket
import threading
import webbrowser
from collections.abc import Callable, Sequence
from pathlib import Path
from types import FrameType
from typing import Any

import uvicorn
from fastapi import FastAPI
from fastapi.responses import RedirectResponse

from rlvitals_dashboard.api import Api
from rlvitals_dashboard.app import create_dash
from rlvitals_dashboard.nav import PREFIX
from rlvitals_monitor.access.login_link import AT_START, make_login_link
from rlvitals_monitor.app import create_app
from rlvitals_monitor.auth import TOKEN_FILE
from rlvitals_monitor.browser_guard import BrowserGuard
from rlvitals_monitor.clocks import utc_now
from rlvitals_monitor.faults import plainly
from rlvitals_monitor.logs import LogFormat, LogSettings, write_json
from rlvitals_monitor.request_bounds import RequestBounds
from rlvitals_monitor.roles import Role
from rlvitals_monitor.settings import Settings
from rlvitals_monitor.tls import tls_fault

LONGEST_GOODBYE_S = 3
"""Open pages get so long to end their requests when the service stops."""


def create_service(settings: Settings, *, with_worker: bool = True) -> FastAPI:
    """The service in its role as one ASGI app. The dashboard comes last: its pages answer what is left over."""
    app = create_app(settings, with_worker=with_worker)
    if not settings.role.shows:
        return app
    app.add_api_route("/", lambda: RedirectResponse(PREFIX, 307), methods=["GET"], include_in_schema=False)
    create_dash(app, Api.of_app(app))
    _guards_outermost(app)
    return app


def _guards_outermost(app: FastAPI) -> None:
    """Foreign hosts and bodies without an end are refused before Dash reads anything: what is added last is asked
    first."""
    guards: tuple[Any, ...] = (BrowserGuard, RequestBounds)
    app.user_middleware.sort(key=lambda added: added.cls not in guards)


@plainly
def main(argv: Sequence[str] | None = None) -> int:
    """Runs until Ctrl-C. 0 after a clean end, 1 when the address cannot be used, 2 for a wrong setting."""
    told = _arguments(argv)
    settings = _settings(told)
    if settings.tls_cert is not None and settings.tls_key is not None:
        fault = tls_fault(settings.tls_cert, settings.tls_key)
        if fault:
            print(f"rlvitals serve: {fault}")
            return 1
    try:
        listener = _listen(settings.host, settings.port)
    except OSError as error:
        print(_refusal(settings, error))
        return 1
    with listener:
        settings = settings.model_copy(update={"port": listener.getsockname()[1]})
        app = create_service(settings)
        app.state.store.refuse_newer()  # as one that does not answer, it is told here, not from within the server
        return _run(app, listener, lambda: _greet(app, settings, open_browser=told.open))


def _arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="rlvitals serve", description="The service and its dashboard.")
    parser.add_argument("--host", help="address to listen on (default: 127.0.0.1, this machine only)")
    parser.add_argument("--port", type=int, help="port (default: 8642; 0 takes any free one)")
    parser.add_argument("--data", type=Path, help="folder of the database (default: ~/.rlvitals/data)")
    parser.add_argument(
        "--role",
        choices=[role.value for role in Role],
        help="what this process does, with others beside it on the same PostgreSQL (default: all)",
    )
    parser.add_argument("--tls-cert", type=Path, help="certificate chain in PEM; with it the service is https")
    parser.add_argument("--tls-key", type=Path, help="its private key in PEM")
    parser.add_argument("--open", action="store_true", help="open the dashboard in the browser")
    return parser.parse_args(argv)


def _settings(told: argparse.Namespace) -> Settings:
    """What the command line does not say comes from the environment, then from the defaults."""
    names = ("host", "port", "data", "role", "tls_cert", "tls_key")
    named: dict[str, Any] = {name: getattr(told, name) for name in names}
    return Settings(**{name: value for name, value in named.items() if value is not None})


def _listen(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    return socket.create_server((host, port), family=family, backlog=2048)


def _refusal(settings: Settings, error: OSError) -> str:
    number = error.errno or 0  # below 0 for a name that cannot be resolved
    why = os.strerror(number) if number > 0 else error.strerror or str(error)
    advice = "" if error.errno != errno.EADDRINUSE else "\nStop what runs there, or take a free port: --port 0"
    return f"rlvitals serve: cannot listen on {settings.host}:{settings.port}: {why}.{advice}"


def _run(app: FastAPI, listener: socket.socket, ready: Callable[[], None]) -> int:
    settings: Settings = app.state.settings
    as_json = LogSettings().log_format is LogFormat.JSON
    if as_json:
        write_json()
    config = uvicorn.Config(
        app,
        log_level="warning",
        log_config=None if as_json else uvicorn.config.LOGGING_CONFIG,
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=LONGEST_GOODBYE_S,
        ssl_certfile=settings.tls_cert,
        ssl_keyfile=settings.tls_key,
    )
    if threading.current_thread() is threading.main_thread():
        # uvicorn stops in good order, then raises the signal again: a stop by the system ends like Ctrl-C.
        signal.signal(signal.SIGTERM, signal.default_int_handler)
    server = _Server(config, ready, drain=lambda: _drain(app), drain_s=settings.drain_s)
    with contextlib.suppress(KeyboardInterrupt):
        server.run(sockets=[listener])
    if server.started:
        print("RL Vitals stopped.")
    return 0 if server.started else 1


def _drain(app: FastAPI) -> None:
    app.state.draining = True


class _Server(uvicorn.Server):
    """Says when it is ready: not before the database is migrated and the port answers.

    At the first signal to stop it says by ``drain`` that it will, and goes on for ``drain_s``, in which a balancer
    finds out; a second signal stops it at once.
    """

    def __init__(
        self, config: uvicorn.Config, ready: Callable[[], None], *, drain: Callable[[], None], drain_s: float
    ) -> None:
        super().__init__(config)
        self._ready, self._drain, self._drain_s = ready, drain, drain_s
        self._drains = False

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        self._drain()
        if not self._drain_s or self._drains:
            super().handle_exit(sig, frame)
            return
        self._drains = True
        timer = threading.Timer(self._drain_s, super().handle_exit, (sig, None))
        timer.daemon = True
        timer.start()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started and not self.should_exit:
            _set_aside()
            self._ready()


def _set_aside() -> None:
    """What is there from the start stays. To look through all of it for garbage, every few seconds, would hold up
    every request for a tenth of a second."""
    gc.collect()
    gc.freeze()


def _greet(app: FastAPI, settings: Settings, *, open_browser: bool) -> None:
    if not settings.role.shows:
        print(f"RL Vitals runs as {settings.role.value} at {settings.url}")
        print("  stop:        Ctrl-C", flush=True)
        return
    made = make_login_link(app.state.store, app.state.local_token, "service", AT_START, utc_now())
    link = f"{settings.url}{made}"
    print(f"RL Vitals watches at {settings.url}{PREFIX}")
    print(f"  sign in:     {link}")
    print("               (works once, for a day; another: rlvitals login-link)")
    print(f"  token file:  {settings.home_folder / TOKEN_FILE} (clients on this machine find it by themselves)")
    print(f"  data:        {settings.data_folder}")
    if not settings.database_url and settings.data_folder != Settings().data_folder:
        named = shlex.quote(str(settings.data_folder.resolve()))
        print(f"               (other commands find it by RLVITALS_DATA={named})")
    if not settings.is_local and settings.tls_cert is None:
        print(f"  warning:     {settings.host} is reachable from other machines, and nothing encrypts the way;")
        print("               from there nobody can steer or administer: see --tls-cert, or put a proxy before it")
    print("  stop:        Ctrl-C", flush=True)
    if open_browser:
        threading.Thread(target=webbrowser.open, args=(link,), daemon=True).start()
