"""How the client is set up: arguments, then RLVITALS_*, then the local service's token file, then defaults.

A wrong value is told once and replaced by the default: a typing error in a variable never stops a training job.
"""

from __future__ import annotations

import math
import os
import re
import stat
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import TypeVar
from urllib.parse import urlsplit

from rlvitals import notices
from rlvitals.contract import codec
from rlvitals.spool import network_file_system

DEFAULT_URL = "http://127.0.0.1:8642"
# Not dots alone: a browser would fold them out of the page's address.
RUN_ID = re.compile(r"(?!\.+$)[A-Za-z0-9._:-]{1,128}")
TOKEN_FILE = "token.json"
_TOKEN_BYTES_MAX = 4_096
MIB = 2**20


class Mode(str, Enum):
    """``offline`` journals and never sends (`rlvitals sync` does, later); ``disabled`` does nothing at all."""

    ONLINE = "online"
    OFFLINE = "offline"
    DISABLED = "disabled"


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Every bound of the client has a name here."""

    url: str = DEFAULT_URL
    token: str = field(default="", repr=False)
    project: str = "default"
    run_id: str = ""
    run_name: str = ""
    mode: Mode = Mode.ONLINE
    spool: Path = Path(".rlvitals")
    tags: tuple[str, ...] = ()
    texts: bool = True
    interval_s: float = 0.25
    timeout_s: float = 10.0
    exit_flush_s: float = 2.0
    fail_open_s: float = 60.0
    longest_pause_s: float = 3600.0
    segment_bytes: int = 8 * MIB
    memory_bytes: int = 32 * MIB
    kept_bytes: int = 256 * MIB
    kept_age_s: float = 24 * 3600.0
    spool_bytes: int = 4096 * MIB


NUMBERS = {
    "RLVITALS_INTERVAL_S": "interval_s",
    "RLVITALS_TIMEOUT_S": "timeout_s",
    "RLVITALS_EXIT_FLUSH_S": "exit_flush_s",
    "RLVITALS_FAIL_OPEN_S": "fail_open_s",
    "RLVITALS_LONGEST_PAUSE_S": "longest_pause_s",
    "RLVITALS_MEMORY_BYTES": "memory_bytes",
    "RLVITALS_KEPT_BYTES": "kept_bytes",
    "RLVITALS_KEPT_AGE_S": "kept_age_s",
    "RLVITALS_SPOOL_BYTES": "spool_bytes",
}

T = TypeVar("T")


def load(
    *,
    project: str | None = None,
    run: str | None = None,
    name: str | None = None,
    tags: tuple[str, ...] | None = None,
    url: str | None = None,
    token: str | None = None,
    spool: str | os.PathLike[str] | None = None,
    mode: str | Mode | None = None,
    env: Mapping[str, str] | None = None,
) -> Settings:
    """Reads the settings. Never raises for a wrong value."""
    env = os.environ if env is None else env
    home = home_folder(env)
    chosen_url, chosen_token = _service(url, token, env, home)
    numbers = {name: _number(env, key, getattr(_DEFAULTS, name)) for key, name in NUMBERS.items()}
    return Settings(
        url=chosen_url,
        token=chosen_token,
        project=_first(project, env.get("RLVITALS_PROJECT"), "default")[:128],
        run_id=_run_id(_first(run, env.get("RLVITALS_RUN_ID"), "")),
        run_name=_first(name, env.get("RLVITALS_RUN_NAME"), "")[:256],
        mode=_mode(mode, env),
        spool=_spool(spool, env, home),
        texts=_switch(env, "RLVITALS_TEXTS", _DEFAULTS.texts),
        tags=tags or tuple(t.strip() for t in env.get("RLVITALS_TAGS", "").split(",") if t.strip()),
        **numbers,  # type: ignore[arg-type]  # each is of its default's type
    )


def home_folder(env: Mapping[str, str]) -> Path:
    """``RLVITALS_HOME``, else ``~/.rlvitals``: the token file and the spool."""
    chosen = env.get("RLVITALS_HOME")
    try:
        return Path(chosen or "~/.rlvitals").expanduser()
    except RuntimeError:  # a user without a home, as in some containers
        return local_spool().parent


def read_token_file(path: Path) -> tuple[str, str]:
    """(url, token) that a local ``rlvitals serve`` left; ("", "") without one, or if others could read it."""
    try:
        state = os.lstat(path)
    except OSError:
        return "", ""
    foreign = hasattr(os, "getuid") and state.st_uid != os.getuid()
    if not stat.S_ISREG(state.st_mode) or foreign or state.st_mode & 0o077:
        notices.once("token-file", f"{path} is ignored: it must be a file of yours with mode 0600")
        return "", ""
    try:
        content = codec.decode(Mapping[str, str], codec.loads(path.read_bytes()))  # type: ignore[type-abstract]
    except (OSError, ValueError) as error:
        notices.once("token-file", f"{path} is ignored: {error}")
        return "", ""
    return content.get("url", ""), content.get("token", "")


_DEFAULTS = Settings()


def _first(*choices: str | None) -> str:
    return next((str(c) for c in choices if c), "")


def _service(url: str | None, token: str | None, env: Mapping[str, str], home: Path) -> tuple[str, str]:
    """A token from the file goes only to the service that wrote it."""
    file_url, file_token = read_token_file(home / TOKEN_FILE)
    chosen = _first(url, env.get("RLVITALS_URL"), file_url, DEFAULT_URL).rstrip("/")
    if not is_url(chosen):
        notices.once("url", f"RLVITALS_URL: expected http(s)://…, got {chosen!r}; using {DEFAULT_URL}")
        chosen = DEFAULT_URL
    own = _token(_first(token, env.get("RLVITALS_TOKEN"), _token_of_file(env.get("RLVITALS_TOKEN_FILE"))))
    return chosen, own or (file_token if chosen == file_url.rstrip("/") else "")


def _token_of_file(path: str | None) -> str:
    """What a mounted secret holds; a file that cannot be read is told, and costs no training."""
    if not path:
        return ""
    try:
        with open(path, "rb") as file:
            return file.read(_TOKEN_BYTES_MAX).decode("utf-8", "replace")
    except OSError as error:
        notices.once("token-file-named", f"RLVITALS_TOKEN_FILE cannot be read: {error.strerror}")
        return ""


def _token(told: str) -> str:
    """Without the line's end that a token from a mounted file has. Its words go into no notice."""
    text = told.strip()
    if text.isascii() and all("!" <= c <= "~" for c in text):
        return text
    notices.once("token", "RLVITALS_TOKEN holds spaces or characters that no token has: it is not used")
    return ""


def is_url(text: str) -> bool:
    """Whether a service can be at ``text``: http or https, with a host."""
    try:
        parts = urlsplit(text)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False


def _run_id(chosen: str) -> str:
    if not chosen or RUN_ID.fullmatch(chosen):
        return chosen
    cleaned = re.sub(r"^\.+$|[^A-Za-z0-9._:-]+", "-", chosen)[:128]
    wanted = "1 to 128 of A-Z a-z 0-9 . _ : -, not dots alone"
    notices.once("run-id", f"run id {chosen!r}: expected {wanted}; using {cleaned!r}")
    return cleaned


def _mode(chosen: str | Mode | None, env: Mapping[str, str]) -> Mode:
    value = chosen if chosen is not None else env.get("RLVITALS_MODE") or Mode.ONLINE
    try:
        return Mode(value)
    except ValueError:
        notices.once("mode", f"RLVITALS_MODE: expected online, offline or disabled, got {value!r}; using online")
        return Mode.ONLINE


def _switch(env: Mapping[str, str], key: str, default: bool) -> bool:
    """A wrong value switches off: what somebody wanted to keep private is not sent by a typing error."""
    text = env.get(key, "").strip().lower()
    if text in ("", "1", "true", "yes", "on"):
        return bool(text) or default
    if text not in ("0", "false", "no", "off"):
        notices.once(key, f"{key}: expected 1 or 0, got {text!r}; using 0")
    return False


def _number(env: Mapping[str, str], key: str, default: T) -> T | float | int:
    text = env.get(key)
    if not text:
        return default
    try:
        value = float(text)
        if not math.isfinite(value) or value < 0:
            raise ValueError
    except ValueError:
        notices.once(key, f"{key}: expected a number that is not negative, got {text!r}; using {default}")
        return default
    return int(value) if isinstance(default, int) else value


def _spool(chosen: str | os.PathLike[str] | None, env: Mapping[str, str], home: Path) -> Path:
    """The user's choice is kept, with a warning on a network file system; the default moves to a local disk."""
    given = chosen or env.get("RLVITALS_DIR")
    path = _given_folder(given) if given else None
    if path is None:
        given, path = None, home.absolute() / "spool"
    network = network_file_system(_existing(path), mounts())
    if not network:
        return path
    if given:
        notices.once("network", f"the spool {path} is on a network file system ({network}): a local disk is safer")
        return path
    local = local_spool()
    notices.once("network", f"{path} is on a network file system ({network}): the spool is {local} instead")
    return local


def _given_folder(given: str | os.PathLike[str]) -> Path | None:
    try:
        return Path(os.path.abspath(Path(given).expanduser()))
    except RuntimeError as error:  # ~somebody who is not there
        notices.once("spool", f"RLVITALS_DIR: {os.fspath(given)!r} is no folder ({error}); using the default")
        return None


def local_spool() -> Path:
    """Where the spool goes when the home folder is on the network."""
    user = os.getuid() if hasattr(os, "getuid") else "user"
    import tempfile  # 12 ms that hardly anybody needs

    return Path(tempfile.gettempdir()) / f"rlvitals-{user}" / "spool"


def _existing(path: Path) -> Path:
    """The part of the path that exists, links resolved, since mounts are told by real paths."""
    return Path(os.path.realpath(next((p for p in (path, *path.parents) if p.exists()), path)))


def mounts() -> str:
    try:
        return Path("/proc/self/mounts").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
