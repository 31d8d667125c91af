"""Where the channels come from: ``RLVITALS_CHANNELS`` and friends."""

from __future__ import annotations

from pathlib import Path

from pydantic import Field, SecretStr
from pydantic_settings import SettingsConfigDict

from rlvitals_monitor.notify.channel import Channels
from rlvitals_monitor.notify.channel_file import load_channels
from rlvitals_monitor.secret_files import FileSettings


class NotifySettings(FileSettings):
    """Every field is read from ``RLVITALS_<NAME>``. Addresses of webhooks are secrets and never shown."""

    model_config = SettingsConfigDict(env_prefix="RLVITALS_", extra="ignore", frozen=True)

    channels: Path | None = Field(default=None, description="YAML file of channels")
    webhook_url: SecretStr = Field(default=SecretStr(""), description="a generic webhook, named webhook")
    webhook_secret: SecretStr = Field(default=SecretStr(""), description="signs it, as Standard Webhooks says")
    slack_webhook_url: SecretStr = Field(default=SecretStr(""), description="Slack, as a channel named slack")
    allow_private: bool = Field(default=False, description="messages may go to the local network, by http too")
    public_url: str = Field(default="", description="the service's address for links in messages")
    channel_secrets: Path = Field(
        default=Path("/run/secrets"), description="whose files channels of the API may name as {file: …}"
    )
    heartbeat_url: SecretStr = Field(
        default=SecretStr(""), description="an outside watcher that is pinged while the service is well"
    )
    heartbeat_s: float = Field(default=60.0, ge=5, le=86_400, description="the time between two pings")

    def load(self, own_url: str) -> Channels:
        """All channels. ``own_url`` serves for links where no public address is given. Raises ValueError."""
        return load_channels(
            self.channels.expanduser() if self.channels else None,
            webhook_url=self.webhook_url.get_secret_value(),
            webhook_secret=self.webhook_secret.get_secret_value(),
            slack_webhook_url=self.slack_webhook_url.get_secret_value(),
            allow_private=self.allow_private,
            public_url=self.public_url or own_url,
        )
