"""On workers of old releases: the policy loss that an actor asks for, and Ray's hook that loads us there."""

from __future__ import annotations

import math
from types import ModuleType
from typing import Any

import pytest
import torch
from torch import Tensor

from rlvitals.integrations.verl import legacy_losses, ray_hook
from rlvitals.integrations.verl.workers import Ledger
from rlvitals.probes.tally import Tally
from tests.client.integrations.verl_v0_shaped import END, INF, NAN


@pytest.fixture(autouse=True)
def offline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RAY_JOB_CONFIG_JSON_ENV_VAR", raising=False)


@pytest.fixture
def core(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A module that gives losses by name, watched; the loss raises on log-probs above 0."""

    def loss(old_log_prob: Any, log_prob: Any, advantages: Any, response_mask: Any, config: Any = None) -> Any:
        if (log_prob > 0).any():
            raise ValueError("its own")
        return log_prob.sum(), {}

    module = ModuleType("agent_r1.trainer.ppo.core_algos")
    module.get_policy_loss_fn = lambda name: loss  # type: ignore[attr-defined]
    monkeypatch.setattr(legacy_losses, "LEDGER", Ledger())
    legacy_losses.patch_core(module)
    return module


def call(core: Any, logp: Tensor, **model_inputs: Tensor) -> Any:
    """As an actor does, whose micro-batch has this name."""
    return core.get_policy_loss_fn("vanilla")(
        log_prob=logp,
        old_log_prob=torch.full((1, 2), -1.0),
        advantages=torch.ones(1, 2),
        response_mask=torch.ones(1, 2),
    )


def measured() -> Any:
    tally = Tally.zero()
    for reduction in legacy_losses.LEDGER.found:
        tally += reduction.tally()
    return tally.measured()


def test_a_policy_loss_tells_its_ratios_with_ids_and_gives_what_it_gave(core: Any) -> None:
    result, _ = call(core, torch.tensor([[-0.5, -2.0]]), responses=torch.tensor([[4, END]]))
    assert result == -2.5
    told = measured()
    assert told.values["ratio.max"] == pytest.approx(math.exp(0.5))
    assert told.extremes["ratio.min"].token_id == END


@pytest.mark.parametrize(("value", "name"), [(NAN, "nan"), (-INF, "negative_infinity")])
def test_a_new_log_prob_that_is_not_finite_is_counted_as_what_it_is(core: Any, value: float, name: str) -> None:
    call(core, torch.tensor([[value, -1.0]]))
    assert measured().values[f"numerics.{name}"] >= 1


def test_what_a_policy_loss_raises_is_raised_and_what_ours_raises_is_not(
    core: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(ValueError, match="its own"):
        call(core, torch.ones(1, 2))
    monkeypatch.delenv("RLVITALS_RAISE", raising=False)
    monkeypatch.setattr(legacy_losses, "_measure", lambda *_: 1 / 0)
    assert call(core, torch.tensor([[-0.5, -2.0]]))[0] == -2.5


def test_rays_hook_adds_ours_after_the_users_own_and_never_a_token(monkeypatch: pytest.MonkeyPatch) -> None:
    called: list[str] = []
    monkeypatch.setenv("RLVITALS_URL", "http://service")
    monkeypatch.setenv("RLVITALS_TOKEN", "secret")
    monkeypatch.setattr(ray_hook, "set_up_worker", lambda: called.append("ours"))
    given = {"worker_process_setup_hook": lambda: called.append("theirs"), "env_vars": {"A": "1"}}
    found = ray_hook.add_setup(given)
    found["worker_process_setup_hook"]()
    assert called == ["theirs", "ours"]
    assert found["env_vars"]["A"] == "1"
    assert found["env_vars"]["RLVITALS_URL"] == "http://service"
    assert "secret" not in str(found)
    assert given["env_vars"] == {"A": "1"}, "what the user gave is left as it was"


def test_rays_workers_start_whatever_becomes_of_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> None:
        raise RuntimeError

    monkeypatch.setattr(ray_hook, "set_up_worker", fail)
    ray_hook.add_setup(None)["worker_process_setup_hook"]()
    monkeypatch.setenv("RAY_JOB_CONFIG_JSON_ENV_VAR", '{"worker_process_setup_hook": "a.b"}')
    assert ray_hook.add_setup({"env_vars": {}}) == {"env_vars": {}}


def test_a_hook_of_the_users_own_is_called_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(ray_hook.NEXT, f"{__name__}.users_hook")
    monkeypatch.setattr(ray_hook, "_load", lambda name: users_hook)
    assert ray_hook.add_setup({})["working_dir"] == "/theirs"


def users_hook(runtime_env: dict[str, Any]) -> dict[str, Any]:
    return {**runtime_env, "working_dir": "/theirs"}
