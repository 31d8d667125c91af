"""Which rules are in force: the shipped catalogue and the operator's own files on top (``RLVITALS_RULES``)."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, field_validator
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from rlvitals_monitor.rules.loader import load_rules
from rlvitals_monitor.rules.rule import Rule


class RuleSettings(BaseSettings):
    """Every field is read from ``RLVITALS_<NAME>``; several files are written with commas between."""

    model_config = SettingsConfigDict(env_prefix="RLVITALS_", extra="ignore", frozen=True)

    rules: Annotated[tuple[Path, ...], NoDecode] = Field(default=(), description="own rule files, YAML")

    @field_validator("rules", mode="before")
    @classmethod
    def _split(cls, value: Any) -> Any:
        return (
            tuple(part.strip() for part in value.split(",") if part.strip()) if isinstance(value, str) else value
        )

    def load(self) -> tuple[Rule, ...]:
        """Raises `RuleFileError` with every problem, its file and line."""
        return load_rules(path.expanduser() for path in self.rules)
