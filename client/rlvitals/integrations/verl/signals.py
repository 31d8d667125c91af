"""One batch of verl → the calls of a loop; and what verl can't tell, with the reasons."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rlvitals.contract.metrics import METRICS, Family
from rlvitals.guard import attempt
from rlvitals.integrations.loop.facts import WEIGHTED
from rlvitals.integrations.loop.vitals import Vitals
from rlvitals.integrations.verl.settings import NO_KL, Settings

if TYPE_CHECKING:
    from rlvitals.integrations.verl.columns import Batch

ON_WORKERS = "not measured: it lives on the workers of verl, and they said nothing of it in this step"
NO_SAMPLER = "not measured: the rollout returns no log-probs (actor_rollout_ref.rollout.calculate_log_probs=True)"
BYPASSED = "not measured: the rollout's log-probs stand in for the old ones (bypass_mode), the ratio is 1"
IN_REWARD = "not measured: the KL is a part of the reward here and has no gradient of its own"
NO_CRITIC = "not measured: this run has no critic"
NO_REFERENCE = "not measured: no reference log-probs, the run has no KL term"
NO_LOGITS = "not measured: verl keeps no logits"
NO_MEMORY = "memory is on the workers; verl logs the peak of a GPU's"
NO_TIMES = "verl logged no time of it in this step"
UNKNOWN_AGGREGATION = "not measured: the weight that this loss_agg_mode gives a token is not known"
_FAMILIES = {Family.RATIO: ON_WORKERS, Family.GRADIENT: ON_WORKERS}
_NAMES = {
    "kl.parameter_grad_norm": "not measured: it needs a second backward pass on the workers",
    "gradient.loss_scale": "verl trains in bfloat16, without a loss scale",
    "numerics.nonfinite_weights": ON_WORKERS,
    **dict.fromkeys(("numerics.nonfinite_logits", "numerics.logit_max"), NO_LOGITS),
    **dict.fromkeys(("numerics.logit_min", "numerics.logit_std"), NO_LOGITS),
    "numerics.nonfinite_loss": ON_WORKERS,
    "correction.weight_mean": "no importance correction is configured (algorithm.rollout_correction.rollout_is)",
    "progress.phase_reward_s": "verl logged no time of rewards: its reward loop works beside the rollout",
    "progress.phase_eval_s": NO_TIMES,
    "progress.phase_checkpoint_s": NO_TIMES,
    "progress.phase_rollout_s": NO_TIMES,
    "progress.phase_reference_s": NO_TIMES,
    "progress.phase_update_s": NO_TIMES,
    "numerics.nonfinite_gradient": "verl logged no gradient norm in this step",
    "progress.tokens": "verl logs the tokens of a step, not those since the start",
    "length.truncation_rate": "the batch was not seen",
}


def absent_reasons(settings: Settings) -> dict[str, str]:
    """Metric → why it is missing where nothing was told of it."""
    found = {m.name: _FAMILIES[m.family] for m in METRICS if m.family in _FAMILIES}
    found |= {m.name: NO_SAMPLER for m in METRICS if m.name.startswith("ratio.rollout_")}
    found |= {m.name: NO_REFERENCE for m in METRICS if m.name.startswith("ratio.reference_")}
    found |= {m.name: NO_CRITIC for m in METRICS if m.name.startswith("critic.")}
    found |= {m.name: NO_MEMORY for m in METRICS if m.name.startswith("progress.gpu_memory")}
    if settings.kl is None:
        found |= {m.name: NO_KL for m in METRICS if m.family is Family.KL}
    elif settings.kl.place == "reward":
        found |= dict.fromkeys(WEIGHTED, IN_REWARD)
    return found | _NAMES


def stop_ids(trainer: Any, settings: Settings) -> frozenset[int]:
    """All ids that end a completion: the tokenizer's own, and those of the model's generation config."""
    from rlvitals.probes.lengths import stop_ids_of

    told = attempt(_read_json, settings.model_folder / "generation_config.json") if settings.model_folder else None
    return stop_ids_of(getattr(trainer, "tokenizer", None), (told or {}).get("eos_token_id"))


def embedding_rows(settings: Settings) -> int | None:
    """How many ids the model can emit, where its configuration is on this machine."""
    told = attempt(_read_json, settings.model_folder / "config.json") if settings.model_folder else None
    rows = (told or {}).get("vocab_size")
    return rows if isinstance(rows, int) else None


def _read_json(file: Path) -> dict[str, Any]:
    read: dict[str, Any] = json.loads(file.read_text())
    return read


def forward(vitals: Vitals, settings: Settings, columns: Mapping[str, Any], tokenizer: Any) -> None:
    """Tells `vitals` all that a batch says."""
    from rlvitals.integrations.verl.columns import prompt_texts, read_batch

    began = time.perf_counter()
    batch = read_batch(columns)
    texts = prompt_texts(batch, tokenizer)
    vitals.reporter.spent(time.perf_counter() - began)
    if not batch.size:
        return
    vitals.rollout(
        batch.ids,
        batch.lengths if settings.rejects else batch.chosen,
        rewards=batch.rewards,
        advantages=batch.advantage,
        group_ids=batch.groups,
        prompts=texts,
    )
    if batch.old is not None:
        vitals.loss(logp=batch.old, **_around(settings, batch))


def _around(settings: Settings, batch: Batch) -> dict[str, Any]:
    from rlvitals.integrations.verl.weights import scale_factor, token_weights

    in_loss = settings.kl is not None and settings.kl.place == "loss"
    weights = token_weights(
        settings.aggregation,
        batch.mask,
        mini_batches=settings.mini_batches,
        scale=scale_factor(settings.get("actor_rollout_ref.actor.loss_scale_factor")),
    )
    return {
        "ref": batch.ref,
        "rollout": None if settings.bypasses else batch.rollout,
        "advantages": batch.advantages,
        "mask": batch.mask,
        "chosen": batch.written,
        "ids": batch.ids,
        "entropy": batch.entropy,
        "weights": weights if in_loss else None,
    }
