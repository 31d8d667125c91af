"""The service's own store, for commands on its machine."""

from __future__ import annotations

import getpass
import sys
from collections.abc import Callable

from rlvitals_monitor.errors import ServiceError
from rlvitals_monitor.settings import Settings
from rlvitals_monitor.store.engine import Store


def on_store(act: Callable[[Store], int]) -> int:
    """What ``act`` answers; 2 where there is no store, or where it refuses, with the reason on stderr."""
    store = Store(Settings().store_url)
    try:
        if not store.is_there:
            raise LookupError(f"there is no store of runs at {store.engine.url!r}: `rlvitals serve` makes one")
        store.refuse_newer()
        if not store.is_current():
            raise LookupError(f"the store at {store.engine.url!r} is not up to date: run `rlvitals db migrate`")
        return act(store)
    except (LookupError, ServiceError) as error:
        sys.stderr.write(f"rlvitals control: {error}\n")
        return 2
    finally:
        store.close()


def command_line_user() -> str:
    """As the audit shows somebody who has the service's own machine."""
    try:
        return f"{getpass.getuser()} (command line)"
    except (KeyError, OSError):  # a container's user without a name
        return "command line"
