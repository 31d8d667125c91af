"""C7 and C10: what the sampler does is what the policy says, and it stops where the model does."""

from __future__ import annotations

from collections.abc import Iterator

from rlvitals.preflight.finding import Finding, Verdict
from rlvitals.preflight.trainer_config import Found, TrainerConfig
from rlvitals.preflight.trainer_keys import Setting

COLD, HOT = 0.6, 1.5
_FILTERS = (Setting.TOP_P, Setting.TOP_K, Setting.MIN_P, Setting.REPETITION_PENALTY)


def check_sampling(config: TrainerConfig) -> Iterator[Finding]:
    """C7: temperature leaves room to explore, and no filter bends the sampler away from the policy's log-probs."""
    heat = config.find(Setting.TEMPERATURE)
    faults = [fault for fault in (_temperature(config, heat), _filters(config)) if fault is not None]
    yield from faults
    if not faults:
        told = str(heat) if heat is not None else "as the engine has it"
        yield Finding(
            check="C7", verdict=Verdict.OK, subject="Sampling", evidence=f"{told}; no filter, no penalty"
        )


def _temperature(config: TrainerConfig, heat: Found | None) -> Finding | None:
    value = heat.number if heat is not None else None
    if heat is None or value is None or COLD <= value <= HOT:
        return None
    if value <= 0:
        verdict, why = Verdict.FATAL, "every answer of a group is the same: no advantage, no gradient"
    elif value < COLD:
        verdict, why = Verdict.WARN, "answers of a group are nearly the same; entropy falls from the first step"
    else:
        verdict, why = Verdict.WARN, "rare tokens are drawn that no training made sense of"
    return Finding(
        check="C7",
        verdict=verdict,
        subject="Sampling temperature",
        evidence=f"{heat}: {why}",
        fix=f"{heat.key} = 1.0",
        where=config.at(heat),
    )


def _filters(config: TrainerConfig) -> Finding | None:
    found = [one for one in map(config.find, _FILTERS) if one is not None and _bends(one)]
    if not found:
        return None
    return Finding(
        check="C7",
        verdict=Verdict.WARN,
        subject="The sampler is not the policy",
        evidence=f"{', '.join(map(str, found))}: the engine's log-probs are renormalised by the mass S that is "
        "kept, so every importance ratio is off by S (top_p 0.9: -0.105 nats a token) and the mismatch rules "
        "alarm by construction (huggingface/trl#6789); top_k 50 keeps about 17 % of the gradient",
        fix="; ".join(f"{one.key} = {_neutral(one)}" for one in found),
        where=config.at(found[0]),
    )


def _bends(found: Found) -> bool:
    value, name = found.number, found.key.rsplit(".", 1)[-1]
    if value is None:
        return False
    if name.endswith("top_p"):
        return 0 < value < 1
    return value != 1 if name == "repetition_penalty" else value > 0


def _neutral(found: Found) -> str:
    name = found.key.rsplit(".", 1)[-1]
    if "top_k" in name:
        return "0" if name == "top_k" and "." not in found.key else "-1"
    return "0" if name == "min_p" else "1.0"


def check_stopping(config: TrainerConfig) -> Iterator[Finding]:
    """C10: an answer may end by its end-of-turn token."""
    ignore, least = config.find(Setting.IGNORE_EOS), config.find(Setting.MIN_TOKENS)
    limit = config.number(Setting.COMPLETION_LIMIT)
    if ignore is not None and ignore.on:
        yield Finding(
            check="C10",
            verdict=Verdict.FATAL,
            subject="The sampler ignores the end of an answer",
            evidence=f"{ignore}: every answer runs to the limit, truncation is 100 %",
            fix=f"{ignore.key} = false",
            where=config.at(ignore),
        )
    elif least is not None and least.number and limit and least.number >= limit:
        yield Finding(
            check="C10",
            verdict=Verdict.FATAL,
            subject="No answer may end before the limit",
            evidence=f"{least} with a completion limit of {limit:.0f}",
            fix=f"take {least.key} out",
            where=config.at(least),
        )
    else:
        told = str(ignore) if ignore is not None else "nothing keeps an answer from ending"
        yield Finding(check="C10", verdict=Verdict.OK, subject="Answers may end", evidence=told)
