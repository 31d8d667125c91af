"""Settings of the service: arguments before ``RLVITALS_*`` variables before defaults."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import urlsplit

from pydantic import BeforeValidator, Field, field_validator, model_validator
from pydantic_settings import NoDecode, SettingsConfigDict
from sqlalchemy import make_url

from rlvitals.contract.command import Policy
from rlvitals_monitor.access.vouching import NEVER, SECRET_CHARS_MIN, SECRET_HEADER
from rlvitals_monitor.roles import Role
from rlvitals_monitor.secret_files import FileSettings
from rlvitals_monitor.store.links import LinkAct

LOOPBACK_NAMES = ("localhost", "127.0.0.1", "[::1]")
_WILDCARDS = frozenset({"0.0.0.0", "::", ""})


def split_commas(value: Any) -> Any:
    """How lists are written in a variable; what is no string is left to the field's own type."""
    return tuple(part.strip() for part in value.split(",") if part.strip()) if isinstance(value, str) else value


class Settings(FileSettings):
    """Every field is read from ``RLVITALS_<NAME>``; what other parts read from there is ignored here."""

    model_config = SettingsConfigDict(env_prefix="RLVITALS_", extra="ignore", frozen=True)

    home: Path = Field(default=Path("~/.rlvitals"), description="where the local client finds token.json")
    data: Path | None = Field(default=None, description="database, keys; default: <home>/data")
    database_url: str = Field(default="", description="SQLAlchemy URL; default: SQLite in the data folder")
    database_password_file: Path | None = Field(
        default=None, description="file with the password of database_url, which then has none itself"
    )
    role: Role = Field(default=Role.ALL, description="what this process does: all, collector, worker, dashboard")
    drain_s: float = Field(
        default=0.0, ge=0, le=600, description="from a stop on, so long /readyz says no while all else goes on"
    )
    host: str = "127.0.0.1"
    port: int = Field(default=8642, ge=0, le=65_535)
    allowed_hosts: Annotated[tuple[str, ...], NoDecode, BeforeValidator(split_commas)] = Field(
        default=(), description="further names under which the service may be addressed, with commas between"
    )
    public_url: str = Field(default="", description="the service's address for people, in messages' links")
    link_voices: Annotated[tuple[LinkAct, ...], NoDecode, BeforeValidator(split_commas)] = Field(
        default=(LinkAct.ACKNOWLEDGE, LinkAct.SILENCE),
        description="what a link in a message may do for who is not signed in, with commas between",
    )
    policy: Policy = Field(default=Policy.APPROVE, description="who may steer: observe, approve, auto")
    max_body_bytes: int = Field(default=8 << 20, gt=0, description="largest body as sent")
    max_decoded_bytes: int = Field(default=32 << 20, gt=0, description="largest body after gzip")
    max_lines: int = Field(default=20_000, gt=0, description="most rows or lines in one batch")
    max_log_bytes: int = Field(default=64 << 20, gt=0, description="largest log for a replay or an import")
    session_hours: float = Field(default=24 * 7, gt=0, le=24 * 366, description="a session ends after so long")
    session_idle_hours: float = Field(
        default=24, gt=0, le=24 * 366, description="a session that nobody uses ends after so long"
    )
    tls_cert: Path | None = Field(
        default=None, description="certificate chain in PEM; with it the service is https"
    )
    tls_key: Path | None = Field(default=None, description="its private key in PEM")
    control_without_tls: bool = Field(
        default=False, description="lets people on other machines steer and administer over plain http"
    )
    proxy_user_header: str = Field(
        default="",
        pattern=r"^[A-Za-z0-9-]{0,64}$",
        description="header in which a proxy before the service names whom it has signed in; needs proxy_secret",
    )
    proxy_secret: str = Field(
        default="", repr=False, description=f"what that proxy shows in the header {SECRET_HEADER}"
    )
    metrics_without_token: bool = Field(default=False, description="/metrics answers whoever asks")

    @field_validator("public_url")
    @classmethod
    def _address(cls, value: str) -> str:
        parts = urlsplit(value)
        if value and (parts.scheme not in ("http", "https") or not parts.hostname):
            raise ValueError("expected https://host/… or nothing")
        return value

    @model_validator(mode="after")
    def _both_or_none(self) -> Settings:
        if (self.tls_cert is None) != (self.tls_key is None):
            raise ValueError("expected RLVITALS_TLS_CERT and RLVITALS_TLS_KEY (--tls-cert, --tls-key), or neither")
        return self

    @model_validator(mode="after")
    def _vouched(self) -> Settings:
        if bool(self.proxy_user_header) != bool(self.proxy_secret):
            raise ValueError("expected RLVITALS_PROXY_USER_HEADER and RLVITALS_PROXY_SECRET, or neither")
        if self.proxy_secret and len(self.proxy_secret) < SECRET_CHARS_MIN:
            raise ValueError(f"expected RLVITALS_PROXY_SECRET of {SECRET_CHARS_MIN} characters or more")
        if self.proxy_user_header.lower() in NEVER:
            raise ValueError(f"expected a header that names a person, got {self.proxy_user_header}")
        return self

    @property
    def is_local(self) -> bool:
        """Whether only this machine can reach the service."""
        return _bracketed(self.host) in LOOPBACK_NAMES

    @property
    def session_idle(self) -> timedelta:
        return timedelta(hours=self.session_idle_hours)

    @property
    def session_lasts(self) -> timedelta:
        return timedelta(hours=self.session_hours)

    @property
    def home_folder(self) -> Path:
        return self.home.expanduser()

    @property
    def data_folder(self) -> Path:
        return self.data.expanduser() if self.data is not None else self.home_folder / "data"

    @property
    def store_url(self) -> str:
        """Raises OSError where the password's file cannot be read."""
        if self.database_url and self.database_password_file is not None:
            password = self.database_password_file.expanduser().read_text(encoding="utf-8").strip()
            return make_url(self.database_url).set(password=password).render_as_string(hide_password=False)
        return self.database_url or f"sqlite:///{self.data_folder / 'rlvitals.db'}"

    @property
    def hosts(self) -> frozenset[str]:
        """Host names that a request may carry; any other is an attack by DNS rebinding or a missing setting."""
        own = (self.host, urlsplit(self.public_url).hostname or "")
        named = (_bracketed(name) for name in own if name not in _WILDCARDS)
        return frozenset(name.lower() for name in (*LOOPBACK_NAMES, *named, *self.allowed_hosts))

    @property
    def url(self) -> str:
        """The address for clients on this machine."""
        host = "127.0.0.1" if self.host in _WILDCARDS else self.host
        scheme = "http" if self.tls_cert is None else "https"
        return f"{scheme}://{_bracketed(host)}:{self.port}"


def _bracketed(host: str) -> str:
    """As it stands in an address: IPv6 in brackets."""
    return f"[{host}]" if ":" in host else host
