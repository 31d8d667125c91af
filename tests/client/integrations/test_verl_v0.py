"""verl's V0 trainers and Agent-R1, tapped by the frame that logs a step: on fakes of the shape that verl has."""

from __future__ import annotations

import json
import math
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from rlvitals.contract.command import CommandKind, Outcome
from rlvitals.contract.report import Event
from rlvitals.control import ControlLimits
from rlvitals.integrations.loop.commands import Later
from rlvitals.integrations.steering import Refused
from rlvitals.integrations.verl import agent_r1, legacy_control, legacy_losses, ray_hook, v0
from rlvitals.integrations.verl import ranks_of_workers as ranks
from rlvitals.integrations.verl.session import session_of
from rlvitals.integrations.verl.workers import Ledger
from rlvitals.probes.tally import Tally
from rlvitals_monitor.alerts.replay import episodes, replay
from rlvitals_monitor.alerts.scenario import read_scenarios
from rlvitals_monitor.diagnosis.diagnose import diagnose
from rlvitals_monitor.replay import fired_of
from rlvitals_monitor.rules.loader import load_rules
from tests.client.integrations import tiny
from tests.client.integrations.test_loop_control import ask

END, TOOL = 7, 6
NAN, INF = math.nan, math.inf


@pytest.fixture(autouse=True)
def offline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RLVITALS_MODE", "offline")
    monkeypatch.setenv("RLVITALS_DIR", str(tmp_path / "spool"))
    monkeypatch.delenv("RAY_JOB_CONFIG_JSON_ENV_VAR", raising=False)


@pytest.fixture
def tracking() -> type:
    """A logger like verl's, tapped."""

    class Tracking:
        def __init__(self) -> None:
            self.logged: list[tuple[int, dict[str, Any]]] = []

        def log(self, data: dict[str, Any], step: int, backend: object = None) -> None:
            self.logged.append((step, data))

    module = ModuleType("verl.utils.tracking")
    module.Tracking = Tracking  # type: ignore[attr-defined]
    v0.patch_tracking(module)
    return Tracking


class Trainer:
    """The loop of V0: a batch in a local name, a step logged, one more counted."""

    def __init__(self, tracking: type, batches: list[Any], **settings: Any) -> None:
        self.global_steps, self.total_training_steps = 0, len(batches)
        self.tokenizer = None
        self.actor_rollout_wg = SimpleNamespace()
        self.kl_ctrl_in_reward = SimpleNamespace(value=0.01)
        self.config = Tree(
            algorithm=Tree(use_kl_in_reward=True, kl_penalty="kl", kl_ctrl=Tree(kl_coef=0.01)),
            trainer=Tree(project_name="p", experiment_name="e", save_freq=-1, default_local_dir="/ck"),
            data=Tree(max_response_length=4),
            actor_rollout_ref=Tree(
                rollout=Tree(n=2, multi_turn=Tree(enable=False)), actor=Tree(use_kl_loss=False)
            ),
            **settings,
        )
        self.saved: list[int] = []
        self._tracking, self._batches = tracking, batches

    def fit(self, before: Any = None, validated: dict[str, float] | None = None) -> Any:
        logger = self._tracking()
        if validated is not None:
            logger.log(data=validated, step=0)
        for batch in self._batches:
            self.global_steps += 1
            if before is not None:
                before(self)
            metrics = {"training/global_step": self.global_steps, "actor/grad_norm": batch.norm}
            logger.log(data=metrics, step=self.global_steps)
        return logger

    def _save_checkpoint(self) -> None:
        self.saved.append(self.global_steps)


class Tree(dict[str, Any]):
    """A configuration that is read by keys and by attributes, as OmegaConf's."""

    def __getattr__(self, name: str) -> Any:
        return self[name] if name in self else super().__getattribute__(name)

    def __setattr__(self, name: str, value: Any) -> None:
        self[name] = value


def proto(norm: float = 1.0, **more: Any) -> Any:
    """A DataProto's shape: two groups of two, four tokens each, the last one of the padding."""
    ids = torch.tensor([[1, 2, END, 0], [1, 3, 3, 3], [2, 2, END, 0], [3, END, 0, 0]])
    mask = torch.tensor([[1, 1, 1, 0], [1, 1, 1, 1], [1, 1, 1, 0], [1, 1, 0, 0]])
    tensors = {
        "prompts": torch.tensor([[0, 5]] * 4),
        "responses": ids,
        "attention_mask": torch.cat([torch.tensor([[0, 1]] * 4), mask], 1),
        "response_mask": mask,
        "old_log_probs": torch.full((4, 4), -1.0),
        "token_level_scores": torch.tensor([[0.0] * 3 + [reward] for reward in (1.0, 0.0, 0.0, 0.0)]),
        "advantages": torch.tensor([[1.0], [-1.0], [0.0], [0.0]]).expand(4, 4),
        **{name: value for name, value in more.items() if isinstance(value, Tensor)},
    }
    others = {"uid": np.array(["a", "a", "b", "b"], dtype=object)}
    others |= {name: value for name, value in more.items() if not isinstance(value, Tensor)}
    return SimpleNamespace(batch=tensors, non_tensor_batch=others, norm=norm)


def steps(trainer: Trainer) -> list[Any]:
    return tiny.steps(session_of(trainer).reporter)


def test_each_step_that_is_logged_is_reported_with_its_batch(tracking: type) -> None:
    trainer = Trainer(tracking, [proto(), proto()])
    logger = trainer.fit(validated={"val-core/gsm8k/reward/mean@1": 0.25})
    assert [step for step, _ in logger.logged] == [0, 1, 2]
    validated, *told = steps(trainer)
    assert (validated.step, validated.values["val-core/gsm8k/reward/mean@1"]) == (0, 0.25)
    assert "reward.mean" not in validated.values
    assert [step.step for step in told] == [1, 2]
    assert told[0].values["length.at_cap_share"] == 0.25
    assert told[0].values["reward.zero_std_groups"] == 0.5
    assert told[0].values["gradient.norm"] == 1.0


@pytest.mark.parametrize("norm", [NAN, INF, -INF])
def test_a_norm_that_is_not_finite_is_told_as_what_it_is(tracking: type, norm: float) -> None:
    trainer = Trainer(tracking, [proto(norm=norm)])
    trainer.fit()
    (told,) = steps(trainer)
    assert told.values["gradient.norm"] == norm or (math.isnan(norm) and math.isnan(told.values["gradient.norm"]))
    assert told.values["numerics.nonfinite_gradient"] == 1


def test_log_probs_that_are_not_finite_are_counted_apart_and_absent_ones_are_missing(tracking: type) -> None:
    old = torch.tensor([[NAN, INF, -1.0, -1.0], [-INF, -1.0, -1.0, -1.0], [-1.0] * 4, [-1.0] * 4])
    trainer = Trainer(tracking, [proto(old_log_probs=old)])
    trainer.fit()
    (told,) = steps(trainer)
    assert told.values["numerics.nan"] >= 1
    assert told.values["numerics.positive_infinity"] >= 1
    assert told.values["numerics.negative_infinity"] >= 1
    assert "calculate_log_probs" in told.missing["ratio.rollout_max"]
    assert "nobody says" in told.missing["policy.forced_loss_tokens"]


def test_who_is_no_trainer_is_left_alone(tracking: type) -> None:
    class Evaluation:
        config, global_steps = None, 3

    def fit(self: Any) -> None:
        tracking().log(data={"training/global_step": 1}, step=1)

    fit(Evaluation())
    assert v0.find_caller(None) is None


def test_a_frame_without_a_batch_gives_scalars_and_says_what_is_blind(tracking: type) -> None:
    trainer = Trainer(tracking, [SimpleNamespace(norm=1.0)])
    trainer.fit()
    (told,) = steps(trainer)
    assert told.values["gradient.norm"] == 1.0
    rows = {row["hook"]: row for row in session_of(trainer).hooks.rows()}
    assert rows["batch"]["state"] == "failing"
    assert "DataProto" in str(rows["batch"]["why"])


# -- masks -----------------------------------------------------------------------------------------


def test_several_turns_of_an_early_verl_are_counted_by_the_loss_mask(tracking: type) -> None:
    trainer = Trainer(tracking, [])
    whole = torch.tensor([[0, 0, 1, 0, 1, 0], [0, 0, 1, 1, 0, 1], [0, 0, 1, 1, 1, 0], [0, 0, 1, 1, 0, 0]])
    batch = proto(loss_mask=whole)
    assert v0.columns(trainer, batch)["response_mask"] is batch.batch["response_mask"]
    trainer.config.actor_rollout_ref.rollout.multi_turn.enable = True
    assert v0.columns(trainer, batch)["response_mask"].tolist() == whole[:, 2:].tolist()


def test_without_a_mask_of_its_own_a_response_ends_with_the_attention() -> None:
    batch = proto()
    del batch.batch["response_mask"]
    found = v0.columns(SimpleNamespace(), batch)
    assert found["response_mask"].tolist() == batch.batch["attention_mask"][:, 2:].tolist()


def test_an_action_mask_beside_the_losss_own_says_who_wrote_a_token() -> None:
    actions = torch.tensor([[1, 1, 0, 0], [1, 1, 1, 1], [1, 1, 1, 0], [1, 1, 0, 0]])
    found = v0.columns(SimpleNamespace(), proto(action_mask=actions))
    assert found["written_mask"].tolist() == actions.bool().tolist()
    assert "action_mask" not in found


def test_the_legacy_branchs_loss_counts_by_the_action_mask() -> None:
    trainer = type("RayAgentTrainer", (), {"__module__": "agent_r1.src.agent_ray_trainer"})()
    actions = torch.tensor([[1, 1, 0, 0], [1, 1, 1, 1], [1, 1, 1, 0], [1, 1, 0, 0]])
    found = v0.columns(trainer, proto(action_mask=actions))
    assert found["response_mask"] is actions
    assert found["written_mask"] is None


# -- who wrote a token -----------------------------------------------------------------------------

MASK = torch.tensor([[1, 1, 1, 0, 0, 1, 1, 1]] * 4)
SAMPLED = torch.tensor([[-0.5, -0.7, 0.0, 0.0, 0.0, -0.4, -0.2, -0.1]] * 4)
OLD = torch.tensor([[-0.5, -0.7, -3.0, -9.0, -9.0, -0.4, -0.2, -0.1]] * 4)


def chosen(sampled: Tensor | None = SAMPLED, old: Tensor | None = OLD, mask: Tensor = MASK) -> list[int] | None:
    columns = {"rollout_log_probs": sampled, "old_log_probs": old}
    found = agent_r1.written(columns, mask)
    return None if found is None else found[0].int().tolist()


def changed(values: Tensor, place: int, value: float) -> Tensor:
    other = values.clone()
    other[:, place] = value
    return other


def test_what_ends_a_turn_without_a_log_prob_of_the_sampler_was_not_chosen() -> None:
    assert chosen() == [1, 1, 0, 0, 0, 1, 1, 1]


def test_a_certain_token_that_the_policy_is_certain_of_too_was_chosen() -> None:
    assert chosen(old=changed(OLD, 2, -0.01)) == [1, 1, 1, 0, 0, 1, 1, 1]


def test_a_certain_token_inside_a_turn_was_chosen() -> None:
    sampled = changed(changed(SAMPLED, 2, -3.0), 0, 0.0)
    assert chosen(sampled, changed(OLD, 0, -2.0)) == [1, 1, 1, 0, 0, 1, 1, 1]


@pytest.mark.parametrize("value", [NAN, INF, -INF])
def test_a_log_prob_that_is_not_finite_is_no_missing_one(value: float) -> None:
    assert chosen(changed(SAMPLED, 2, value)) == [1, 1, 1, 0, 0, 1, 1, 1]


def test_a_greedy_sampler_or_one_that_is_another_policy_says_nothing() -> None:
    assert chosen(torch.zeros_like(SAMPLED)) is None
    assert chosen(old=OLD - 5) is None
    assert chosen(sampled=None) is None
    assert chosen(old=None) is None


# -- Agent-R1 --------------------------------------------------------------------------------------


def conversations(*, covered: bool) -> Any:
    """Rows of two trajectories and one of padding; in row 0 a tool was called and the turn was ended by force."""
    ids = torch.tensor(
        [[1, TOOL, END, 4, 2, END], [2, 3, END, 0, 0, 0], [1, 1, 2, END, 0, 0], [1, 1, 2, END, 0, 0]]
    )
    seen = torch.tensor([[1] * 6, [1, 1, 1, 0, 0, 0], [1, 1, 1, 1, 0, 0], [1, 1, 1, 1, 0, 0]])
    mask = seen.clone()
    mask[0, 3] = 0
    mask[3] = 0
    if covered:
        mask[0, 2] = 0
    sampled = torch.tensor([[-0.5, -0.6, 0.0, 0.0, -0.5, -0.3], *[[-0.5] * 6] * 3])
    old = sampled.clone()
    old[0, 2:4] = torch.tensor([-4.0, -6.0])
    batch = proto(
        responses=ids,
        attention_mask=torch.cat([torch.tensor([[0, 1]] * 4), seen], 1),
        response_mask=mask,
        rollout_log_probs=sampled,
        old_log_probs=old,
        sample_mask=torch.tensor([True, True, True, False]),
        advantages=torch.ones(4, 6),
        token_level_scores=torch.tensor(
            [[0.25] + [0.0] * 5, [0.5] + [0.0] * 5, [0.1] + [0.0] * 5, [9.0] + [0.0] * 5]
        ),
        trajectory_uids=np.array(["t", "t", "u", "u"], dtype=object),
    )
    batch.non_tensor_batch["uid"] = np.array(["a"] * 4, dtype=object)
    return batch


def test_rows_of_one_trajectory_have_its_score_and_padding_has_none() -> None:
    found = v0.columns(SimpleNamespace(), conversations(covered=True))
    assert found["token_level_scores"].tolist()[:3] == pytest.approx([0.75, 0.75, 0.1])
    assert agent_r1.trajectory_scores(proto().batch) == {}


@pytest.mark.parametrize("covered", [False, True])
def test_a_forced_end_of_turn_is_named_up_to_the_diagnosis_unless_the_mask_covers_it(
    tracking: type, covered: bool
) -> None:
    trainer = Trainer(tracking, [conversations(covered=covered) for _ in range(6)])
    trainer.config.data.max_response_length = 6
    trainer.fit()
    told = steps(trainer)
    assert [step.values["length.completions"] for step in told] == [3.0] * 6
    names = ("policy.forced_loss_tokens", "gradient.norm", "ratio.rollout_max", "ratio.rollout_min")
    series = {name: " ".join(f"{step.values[name]:g}" for step in told) for name in names}
    text = json.dumps({"scenarios": [{"name": "x", "series": series, "alerts": []}]})
    (scenario,) = read_scenarios(text, "x")
    found = diagnose([fired_of(one) for one in episodes(replay(load_rules(), scenario.steps, {}))])
    if covered:
        assert told[0].values["policy.forced_loss_tokens"] == 0
        assert not found
        return
    extreme = told[0].extremes["policy.forced_loss_tokens"]
    assert (extreme.token_id, extreme.position, extreme.sample) == (END, 2, 0)
    (incident,) = found
    assert (incident.cause, incident.onset_step) == ("special_token_fault", 1)


# -- commands --------------------------------------------------------------------------------------


def answers(trainer: Trainer) -> dict[str, Outcome]:
    found = tiny.records(session_of(trainer).reporter)
    return {r.command_id: r for r in found if isinstance(r, Outcome)}


def asking(*commands: tuple[int, CommandKind, float | None]) -> Any:
    """Asks at the begin of a step, which its log then takes."""

    def ask_now(trainer: Trainer) -> None:
        session = session_of(trainer)
        session.reporter.control.limits = ControlLimits(cooldown_steps=0)
        for step, kind, argument in commands:
            if step == trainer.global_steps:
                ask(session.vitals, kind, argument)

    return ask_now


def test_a_pause_holds_the_driver_until_somebody_resumes(tracking: type) -> None:
    trainer = Trainer(tracking, [proto(), proto()])
    beats: list[float] = []

    def before(trainer: Trainer) -> None:
        session = session_of(trainer)
        session.vitals._commands.wait = lambda s: (beats.append(s), ask(session.vitals, CommandKind.RESUME))
        asking((1, CommandKind.PAUSE, None))(trainer)

    trainer.fit(before)
    assert len(beats) == 1
    assert answers(trainer)["pause"].state.value == "applied"
    assert [step.step for step in steps(trainer)] == [1, 2]


def test_the_rewards_coefficient_is_the_controllers_and_a_loss_elsewhere_cannot_be_reached(tracking: type) -> None:
    trainer = Trainer(tracking, [proto(), proto()])
    trainer.fit(asking((1, CommandKind.SET_KL_COEF, 0.02), (1, CommandKind.SCALE_LR, 0.5)))
    assert trainer.kl_ctrl_in_reward.value == 0.02
    told = answers(trainer)
    assert (told["set_kl_coef"].before, told["set_kl_coef"].after) == (0.01, 0.02)
    assert "no workers" in told["scale_lr"].reason


def test_a_stop_is_the_next_step_and_a_checkpoint_is_written_at_once(tracking: type) -> None:
    trainer = Trainer(tracking, [proto()] * 9)
    trainer.fit(asking((3, CommandKind.STOP, None)))
    assert trainer.total_training_steps == 4
    assert trainer.saved == [3]
    folders = [r.payload for r in tiny.records(session_of(trainer).reporter) if isinstance(r, Event)]
    assert [f["folder"] for f in folders if "folder" in f] == ["/ck/global_step_3"]


def test_beside_an_engine_that_is_awake_the_checkpoint_comes_with_the_next_step(tracking: type) -> None:
    trainer = Trainer(tracking, [])
    trainer.checkpoint_manager = None  # type: ignore[attr-defined]
    trainer.config.trainer.save_freq = 50
    checkpoints = legacy_control.Checkpoints(trainer)
    assert checkpoints.save(3) == Later(4)
    assert checkpoints.save(3) == Later(4)
    assert (trainer.config.trainer.save_freq, trainer.saved) == (1, [])
    checkpoints.step_ends()
    assert trainer.config.trainer.save_freq == 50


def test_weights_that_are_not_finite_are_not_saved(tracking: type) -> None:
    def refuse(step: int) -> None:
        raise Refused(f"NaN at step {step}")

    trainer = Trainer(tracking, [])
    with pytest.raises(Refused, match="NaN at step 3"):
        legacy_control.Checkpoints(trainer, refuse).save(3)
    assert trainer.saved == []


class FakeProto:
    """A DataProto of numbers, as ranks get and give it."""

    def __init__(self, batch: dict[str, Tensor]) -> None:
        self.batch = batch

    from_dict = classmethod(lambda cls, tensors: cls(tensors))


def rank(value: float) -> Any:
    config = SimpleNamespace(kl_loss_coef=value)
    return SimpleNamespace(actor=SimpleNamespace(config=config))


@pytest.fixture
def group(monkeypatch: pytest.MonkeyPatch) -> Any:
    module = ModuleType("verl")
    module.DataProto = FakeProto  # type: ignore[attr-defined]
    monkeypatch.setitem(__import__("sys").modules, "verl", module)
    workers = [rank(0.1), rank(0.1)]

    def execute(function: Any, data: FakeProto) -> FakeProto:
        rows = data.batch["value"]
        found = [function(one, FakeProto({"value": rows[n : n + 1]})) for n, one in enumerate(workers)]
        return FakeProto({"value": torch.cat([one.batch["value"] for one in found])})

    return SimpleNamespace(world_size=2, workers=workers, execute_with_func_generator=execute)


def test_a_coefficient_is_read_back_from_every_rank(group: Any) -> None:
    session = SimpleNamespace(kl_coef=0.1)
    legacy_control._set_in_loss(session, group, 0.25)  # type: ignore[arg-type]
    assert session.kl_coef == 0.25
    assert ranks.on_each_rank(group, ranks.read_kl) == [0.25, 0.25]


def test_ranks_that_do_not_agree_or_have_no_such_loss_are_a_reason(group: Any) -> None:
    with pytest.raises(Refused, match="do not agree"):
        legacy_control._same([0.1, 0.2], "")
    group.workers[1] = SimpleNamespace(actor=None)
    with pytest.raises(Refused, match="no coefficient"):
        legacy_control._set_in_loss(SimpleNamespace(kl_coef=0.1), group, 0.25)  # type: ignore[arg-type]


# -- the policy loss on old workers -----------------------------------------------------------------


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


# -- Ray's hook ------------------------------------------------------------------------------------


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
