"""Settings from files: ``RLVITALS_<NAME>_FILE`` names a file whose content is the setting.

So a secret need not stand in the environment, which other programs and crash reports see; containers' secrets come
as files anyhow.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from pydantic.fields import FieldInfo
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsError

BYTES_MAX = 65_536


class SecretFiles(PydanticBaseSettingsSource):
    """Comes after the environment. A setting that both name is refused, since one of them would be in vain."""

    def get_field_value(self, field: FieldInfo, field_name: str) -> tuple[Any, str, bool]:
        """Raises `SettingsError` for a file that is named beside the setting itself, or cannot be read."""
        variable = f"{self.config['env_prefix']}{field_name}".upper()
        path = os.environ.get(f"{variable}_FILE")
        if path is None:
            return None, field_name, False
        if variable in os.environ:
            raise SettingsError(f"expected {variable} or {variable}_FILE, got both")
        return read_secret(Path(path), f"{variable}_FILE"), field_name, False

    def __call__(self) -> dict[str, Any]:
        told = {
            name: self.get_field_value(field, name)[0] for name, field in self.settings_cls.model_fields.items()
        }
        return {name: value for name, value in told.items() if value is not None}


def read_secret(path: Path, variable: str) -> str:
    """The file's text without the line end that editors put there. Raises `SettingsError`."""
    try:
        content = path.expanduser().read_bytes()
        if len(content) > BYTES_MAX:
            raise ValueError(f"expected a file of at most {BYTES_MAX} bytes")
        return content.decode("utf-8").rstrip("\r\n")
    except (OSError, ValueError) as error:
        raise SettingsError(f"{variable}: {path}: {error}") from None


class FileSettings(BaseSettings):
    """Settings that may also come from files."""

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        return init_settings, env_settings, SecretFiles(settings_cls)
