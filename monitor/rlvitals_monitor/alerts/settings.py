"""Which rules are in force: the shipped catalogue and the operator's own files on top (``RLVITALS_RULES``)."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from pydantic import BeforeValidator, Field
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from rlvitals_monitor.rules.loader import load_rules
from rlvitals_monitor.rules.rule import Rule
from rlvitals_monitor.settings import split_commas


class RuleSettings(BaseSettings):
    """Every field is read from ``RLVITALS_<NAME>``; several files are written with commas between."""

    model_config = SettingsConfigDict(env_prefix="RLVITALS_", extra="ignore", frozen=True)

    rules: Annotated[tuple[Path, ...], NoDecode, BeforeValidator(split_commas)] = Field(
        default=(), description="own rule files, YAML"
    )

    def load(self) -> tuple[Rule, ...]:
        """Raises `RuleFileError` with every problem, its file and line."""
        return load_rules(path.expanduser() for path in self.rules)
