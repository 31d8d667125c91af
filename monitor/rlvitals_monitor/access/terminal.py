"""What the commands of access have in common: the store, spans of time, how things are shown."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta

from rlvitals.screen import printable
from rlvitals_monitor.auth import TOKEN_FILE
from rlvitals_monitor.errors import BadRequest, NewerSchema, ServiceError
from rlvitals_monitor.settings import Settings
from rlvitals_monitor.store.engine import Store

Act = Callable[[Store, argparse.Namespace, datetime], None]
WRONG_ARGUMENT, NOT_DONE = 2, 1


def run(acts: Mapping[str, Act], told: argparse.Namespace, settings: Settings, now: datetime) -> int:
    """0 when done, 1 where the service's rules refuse it, 2 for a wrong argument; why is on stderr."""
    settings.data_folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    store = Store(settings.store_url)
    try:
        store.migrate()
        told.settings = settings
        acts[getattr(told, "action", "")](store, told, now)
    except NewerSchema:
        raise
    except ServiceError as error:
        sys.stderr.write(f"rlvitals: {error}\n")
        return WRONG_ARGUMENT if isinstance(error, BadRequest) else NOT_DONE
    finally:
        store.close()
    return 0


def address_of(settings: Settings) -> str:
    """Where people reach the service: as it is set, else as the running service noted it for clients here."""
    if settings.public_url:
        return settings.public_url.rstrip("/")
    try:
        told = json.loads((settings.home_folder / TOKEN_FILE).read_bytes())
    except (FileNotFoundError, ValueError):
        return settings.url
    return str(told.get("url") or settings.url) if isinstance(told, dict) else settings.url


def span(value: float, unit: str, option: str, *, zero: bool = False) -> timedelta:
    """Raises `BadRequest`."""
    try:
        span = timedelta(**{unit: value})
    except (ValueError, OverflowError):
        span = timedelta(-1)
    if not timedelta(0) <= span <= timedelta(days=3_650) or (not zero and not span):
        raise BadRequest(f"{option}: expected {unit} above 0 and at most ten years, got {value}")
    return span


def state_of(valid: bool, revoked_at: datetime | None, expires_at: datetime | None) -> str:
    if revoked_at is not None:
        return f"revoked {at(revoked_at)}"
    if expires_at is None:
        return "valid"
    return f"valid until {at(expires_at)}" if valid else f"expired {at(expires_at)}"


def at(moment: datetime) -> str:
    return f"{moment:%Y-%m-%d %H:%M}"


def show(line: str) -> None:
    sys.stdout.write(f"{printable(line)}\n")


def note(line: str) -> None:
    sys.stderr.write(f"{printable(line)}\n")
