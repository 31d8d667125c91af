"""Who may steer, and how far: ``RLVITALS_POLICY`` and friends."""

from __future__ import annotations

from dataclasses import fields
from typing import Annotated, Any

from pydantic import Field, field_validator
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from rlvitals.contract.command import CommandKind, Policy
from rlvitals_monitor.control.bounds import Limits
from rlvitals_monitor.control.policy import Policies

_DEFAULT = Limits()
_Overrides = Annotated[dict[str, Policy], NoDecode]
_Kinds = Annotated[frozenset[CommandKind], NoDecode]
_Names = Annotated[frozenset[str], NoDecode]


class ControlSettings(BaseSettings):
    """Every field is read from ``RLVITALS_<NAME>``: overrides are ``name=policy,name=policy``, lists ``a,b``."""

    model_config = SettingsConfigDict(env_prefix="RLVITALS_", extra="ignore", frozen=True)

    policy: Policy = Field(default=Policy.APPROVE, description="who may steer: observe, approve, auto")
    policy_rules: _Overrides = Field(default_factory=dict, description="other policies for single rules")
    policy_projects: _Overrides = Field(default_factory=dict, description="other policies for single projects")
    automatic_factor: float = Field(default=_DEFAULT.automatic_factor, ge=1, le=2)
    approved_kl_down: float = Field(default=_DEFAULT.approved_kl_down, ge=1, allow_inf_nan=False)
    approved_kl_up: float = Field(default=_DEFAULT.approved_kl_up, ge=1, allow_inf_nan=False)
    approved_lr_down: float = Field(default=_DEFAULT.approved_lr_down, ge=1, allow_inf_nan=False)
    approved_lr_up: float = Field(default=_DEFAULT.approved_lr_up, ge=1, allow_inf_nan=False)
    command_factor: float = Field(
        default=_DEFAULT.command_factor, ge=1, allow_inf_nan=False, description="most one command may change"
    )
    step_factor: float = Field(
        default=_DEFAULT.step_factor,
        ge=1,
        allow_inf_nan=False,
        description="most all commands at a step may change",
    )
    rest_steps: int = Field(default=_DEFAULT.rest_steps, ge=0, description="steps between two changes of a number")
    changes: int = Field(default=_DEFAULT.changes, ge=0, description="changes that a run takes in all")
    automatic_changes: int = Field(default=_DEFAULT.automatic_changes, ge=0)
    proposals: int = Field(default=_DEFAULT.proposals, ge=0)
    longest_pause_s: float = Field(default=_DEFAULT.longest_pause_s, ge=1, allow_inf_nan=False)
    cool_down_steps: int = Field(default=_DEFAULT.cool_down_steps, ge=0)
    cool_down_s: float = Field(default=_DEFAULT.cool_down_s, ge=0, allow_inf_nan=False)
    proposal_open_s: float = Field(default=_DEFAULT.proposal_open_s, gt=0, allow_inf_nan=False)
    delivery_open_s: float = Field(default=_DEFAULT.delivery_open_s, gt=0, allow_inf_nan=False)

    two_person_kinds: _Kinds = Field(default=frozenset(), description="commands that two people must approve")
    two_person_projects: _Names = Field(default=frozenset(), description="projects whose changes two must approve")

    @field_validator("two_person_kinds", "two_person_projects", mode="before")
    @classmethod
    def _list(cls, value: Any) -> Any:
        return [part.strip() for part in value.split(",") if part.strip()] if isinstance(value, str) else value

    @field_validator("policy_rules", "policy_projects", mode="before")
    @classmethod
    def _pairs(cls, value: Any) -> Any:
        if not isinstance(value, str):
            return value
        pairs = [part.strip().partition("=") for part in value.split(",") if part.strip()]
        return {name.strip(): policy.strip() for name, _, policy in pairs}

    @property
    def policies(self) -> Policies:
        return Policies(default=self.policy, rules=self.policy_rules, projects=self.policy_projects)

    @property
    def limits(self) -> Limits:
        return Limits(**{field.name: getattr(self, field.name) for field in fields(Limits)})
