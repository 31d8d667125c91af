"""``python -m rlvitals_monitor`` runs the API alone; the functions here are commands of ``rlvitals``."""

from __future__ import annotations

import argparse
import sys
from datetime import datetime, timezone

from sqlalchemy import Connection

from rlvitals_monitor import auth, backtest
from rlvitals_monitor.control import command as control_command
from rlvitals_monitor.control.local_store import command_line_user
from rlvitals_monitor.faults import plainly
from rlvitals_monitor.notify import command
from rlvitals_monitor.settings import Settings
from rlvitals_monitor.silences import command as silence_command
from rlvitals_monitor.store import tokens
from rlvitals_monitor.store.audit import append_audit
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
def db(argv: list[str]) -> int:
    """The database: bring its schema up to date, or check that it is."""
    parser = argparse.ArgumentParser(prog="rlvitals db", description=db.__doc__)
    parser.add_argument("action", choices=["migrate", "check"])
    action = parser.parse_args(argv).action
    store = _store()
    try:
        if action == "migrate":
            store.migrate()
        store.refuse_newer()
        current = store.is_current()
    finally:
        store.close()
    print("the schema is up to date" if current else "the schema is not up to date: run `rlvitals db migrate`")
    return 0 if current else 1


@plainly
def token(argv: list[str]) -> int:
    """Access tokens: create one (shown once), list them, revoke one by its id."""
    parser = argparse.ArgumentParser(prog="rlvitals token", description=token.__doc__)
    actions = parser.add_subparsers(dest="action", required=True)
    create = actions.add_parser("create")
    create.add_argument("name", help="who will use it; stands in the audit")
    create.add_argument(
        "--scope",
        action="append",
        required=True,
        help="read, ingest, ingest:<project>, operate or admin; repeatable",
    )
    actions.add_parser("list")
    revoke = actions.add_parser("revoke")
    revoke.add_argument("id")
    told = parser.parse_args(argv)
    store = _store()
    try:
        store.migrate()
        return {"create": _create_token, "list": _list_tokens, "revoke": _revoke_token}[told.action](store, told)
    finally:
        store.close()


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


def _create_token(store: Store, told: argparse.Namespace) -> int:
    try:
        scopes = auth.check_scopes(told.scope)
    except ValueError as error:
        print(f"--scope: {error}", file=sys.stderr)
        return 2
    made = tokens.make_token()
    with store.begin() as connection:
        info = tokens.register(connection, made, told.name, scopes, datetime.now(timezone.utc))
        _audit(connection, "token created", f"{info.id} {info.name}: {' '.join(sorted(info.scopes))}")
    print(f"{info.id}: {', '.join(sorted(info.scopes))}", file=sys.stderr)
    print(made)
    return 0


def _list_tokens(store: Store, _told: argparse.Namespace) -> int:
    with store.read() as connection:
        for info in tokens.list_tokens(connection):
            state = "valid" if info.revoked_at is None else f"revoked {info.revoked_at:%Y-%m-%d %H:%M}"
            scopes = " ".join(sorted(info.scopes))
            print(f"{info.id}  {info.created_at:%Y-%m-%d %H:%M}  {state}  {info.name}  {scopes}")
    return 0


def _revoke_token(store: Store, told: argparse.Namespace) -> int:
    with store.begin() as connection:
        done = tokens.revoke(connection, told.id, datetime.now(timezone.utc))
        if done:
            _audit(connection, "token revoked", told.id)
    print(f"{told.id} is revoked" if done else f"there is no valid token {told.id}", file=sys.stderr)
    return 0 if done else 1


def _audit(connection: Connection, what: str, detail: str) -> None:
    append_audit(connection, at=datetime.now(timezone.utc), who=command_line_user(), what=what, detail=detail)


def _store() -> Store:
    settings = Settings()
    settings.data_folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    return Store(settings.store_url)


if __name__ == "__main__":
    sys.exit(serve(sys.argv[1:]))
