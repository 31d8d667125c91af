"""``python -m rlvitals_monitor`` runs the API alone; the functions here are commands of ``rlvitals``."""

from __future__ import annotations

import argparse
import sys
from datetime import datetime, timezone

from rlvitals_monitor import backtest
from rlvitals_monitor.access import command as access_command
from rlvitals_monitor.access import user_command
from rlvitals_monitor.control import command as control_command
from rlvitals_monitor.database.command import backup as backup
from rlvitals_monitor.database.command import db as db
from rlvitals_monitor.database.command import restore as restore
from rlvitals_monitor.faults import plainly
from rlvitals_monitor.notify import command
from rlvitals_monitor.settings import Settings
from rlvitals_monitor.silences import command as silence_command
from rlvitals_monitor.store.engine import Store


@plainly
def serve(argv: list[str]) -> int:
    """The API without the dashboard."""
    import uvicorn

    from rlvitals_monitor.app import create_app

    defaults = Settings()
    parser = argparse.ArgumentParser(prog="python -m rlvitals_monitor", description=serve.__doc__)
    parser.add_argument("--host", default=defaults.host)
    parser.add_argument("--port", type=int, default=defaults.port)
    told = parser.parse_args(argv)
    settings = Settings(host=told.host, port=told.port)
    uvicorn.run(create_app(settings), host=settings.host, port=settings.port, server_header=False)
    return 0


@plainly
def token(argv: list[str]) -> int:
    """Access tokens: create or rotate one (shown once), list them, revoke one by its id."""
    return access_command.token(argv, Settings(), _now())


@plainly
def user(argv: list[str]) -> int:
    """People: add one by an invitation, list, change, disable, remove."""
    return user_command.user(argv, Settings(), _now())


@plainly
def share(argv: list[str]) -> int:
    """Links that show one run, for reading, for a while."""
    return access_command.share(argv, Settings(), _now())


@plainly
def login_link(argv: list[str]) -> int:
    """A link that signs the owner in, once."""
    return access_command.login_link(argv, Settings(), _now())


@plainly
def rules(argv: list[str]) -> int:
    """Alert rules: check files, test scenarios, rehearse them over a stored run, list those in force."""
    return backtest.main(argv)


@plainly
def control(argv: list[str]) -> int:
    """Steering: who may, who did, and what a KL policy would have decided over a past run."""
    return control_command.main(argv)


@plainly
def notify(argv: list[str]) -> int:
    """Channels that alerts go to: list them, or send a test message to one."""
    settings = Settings()
    return command.notify(argv, settings.url, settings.store_url)


@plainly
def silence(argv: list[str]) -> int:
    """Alerts of which nobody is told for a while: silences and maintenance windows."""
    told = silence_command.parse(argv)
    store = _store()
    try:
        store.migrate()
        return silence_command.run(store, told, datetime.now(timezone.utc))
    finally:
        store.close()


def _now() -> datetime:
    return datetime.now(timezone.utc)


def _store() -> Store:
    settings = Settings()
    settings.data_folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    return Store(settings.store_url)


if __name__ == "__main__":
    sys.exit(serve(sys.argv[1:]))
