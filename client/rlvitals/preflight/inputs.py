"""The stages of data, length budget, settings and versions: read what was given, then judge it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rlvitals.guard import outcome
from rlvitals.preflight.budget import BudgetFacts, Limit, judge_budget
from rlvitals.preflight.data import DataReading, files_of, read_file, read_rows
from rlvitals.preflight.data_faults import Fault
from rlvitals.preflight.data_fields import LABEL_KEYS
from rlvitals.preflight.data_findings import judge_data
from rlvitals.preflight.data_lengths import CountTokens, LengthFacts
from rlvitals.preflight.data_rows import DataOptions
from rlvitals.preflight.data_templates import template_of
from rlvitals.preflight.file_kind import read_regular
from rlvitals.preflight.finding import Finding, Verdict
from rlvitals.preflight.garble import spell_damage
from rlvitals.preflight.source import named_folder, tokenizer_of
from rlvitals.preflight.subject import Progress, Subject
from rlvitals.preflight.tokenizer import TokenizerFacts, read_tokenizer
from rlvitals.preflight.trainer_config import ConfigReadError, TrainerConfig, read_config
from rlvitals.preflight.trainer_keys import Setting, Trainer
from rlvitals.preflight.training import judge_training
from rlvitals.preflight.training_kl import estimator_of
from rlvitals.preflight.versions import installed, judge_versions, release

_PACKAGE = {
    Trainer.TRL: "trl",
    Trainer.VERL: "verl",
    Trainer.OPENRLHF: "openrlhf",
    Trainer.SLIME: "slime",
}
_BESIDE = ("vllm", "transformers")


@dataclass(frozen=True, slots=True, kw_only=True)
class Inputs:
    """What goes into a run besides tokenizer and model.

    ``data`` are paths (files or folders) or rows; ``config`` is an object, mapping, path or `TrainerConfig`.
    ``completion_limit``, ``prompt_limit`` and ``context`` (tokens) win over what the settings say. ``versions``
    (package to version) replace those that are installed here; None means: look.
    """

    data: Any = None
    prompt_key: str = ""
    answer_key: str = ""
    config: Any = None
    overrides: Mapping[str, object] = field(default_factory=dict)
    trainer: Trainer | None = None
    world_size: int | None = None
    versions: Mapping[str, str] | None = None
    completion_limit: int | None = None
    prompt_limit: int | None = None
    context: int | None = None
    count_tokens: CountTokens | None = None
    template: str = ""
    specials: frozenset[str] = frozenset()
    spelt: Mapping[Fault, str] = field(default_factory=dict)
    progress: Progress | None = None


def check_inputs(inputs: Inputs) -> Iterator[Finding]:
    """D, L, C and V in this order; what was not given is SKIPPED once for its family."""
    versions = dict(installed() if inputs.versions is None else inputs.versions)
    config, refusal = _config(inputs, versions)
    limits = _limits(inputs, config)
    readings = list(_read(inputs, limits))
    for reading in readings:
        yield from judge_data(reading.facts, inputs.spelt)
    if not readings:
        yield _skipped("D1", "Data files", "no data was given (--data)")
    facts = _budget(readings, limits)
    yield from judge_budget(facts)
    if refusal is not None:
        yield refusal
    elif config is None:
        yield _skipped("C1", "Trainer settings", "no settings were given (--config)")
    else:
        yield from judge_training(config, _cut_share(facts))
    yield from _judge_versions(versions, config, given=inputs.versions is not None)


def check_run(subject: Subject) -> Iterator[Finding]:
    """The stage of `check`: data and trainer settings of a subject, counted by its tokenizer."""
    given = tokenizer_of(subject)
    tokens = outcome(read_tokenizer, given)[0] if given is not None else None
    template = subject.chat_template or (tokens.chat_template if tokens is not None else None)
    yield from check_inputs(
        Inputs(
            data=subject.data,
            config=subject.trainer_config,
            versions=None if subject.data is not None or subject.trainer_config is not None else {},
            context=context_of(named_folder(subject.model)),
            count_tokens=counter(tokens),
            template=marker_of(template),
            specials=frozenset(tokens.added.values()) if tokens is not None else frozenset(),
            spelt=spell_damage(tokens),
            progress=subject.progress,
        )
    )


def counter(tokens: TokenizerFacts | None) -> CountTokens | None:
    """How many tokens a text has, without special ones around it."""
    if tokens is None:
        return None
    encode = tokens.encode

    def count(text: str) -> int:
        # a lone surrogate, which D8 names, would be refused
        return len(encode(text.encode("utf-8", "replace").decode("utf-8")))

    return count


def context_of(model: Any) -> int | None:
    """``max_position_embeddings`` of a model, a config, or a folder with ``config.json``; None if unknown."""
    config = getattr(model, "config", model)
    if isinstance(model, (str, Path)):
        path = Path(model) / "config.json"
        config = outcome(lambda: json.loads(read_regular(path)))[0] if path.is_file() else None
    inner = _get(config, "text_config")
    found = _get(config if inner is None else inner, "max_position_embeddings")
    return found if isinstance(found, int) and not isinstance(found, bool) and found > 0 else None


def _get(config: Any, name: str) -> Any:
    return config.get(name) if isinstance(config, Mapping) else getattr(config, name, None)


def marker_of(template: str | None) -> str:
    """The turn start that a chat template writes; empty where it is none of the known."""
    found = template_of(template) if template else None
    return found.marker if found is not None else ""


def _config(inputs: Inputs, versions: Mapping[str, str]) -> tuple[TrainerConfig | None, Finding | None]:
    if inputs.config is None and not inputs.overrides:
        return None, None
    try:
        config = read_config(
            inputs.config if inputs.config is not None else {},
            inputs.overrides,
            inputs.trainer,
            world_size=inputs.world_size,
        )
    except ConfigReadError as error:
        return None, Finding(
            check="C1",
            verdict=Verdict.FATAL,
            subject="The settings can't be read",
            evidence=str(error),
            fix="give a YAML or JSON file, or a script with the command line",
        )
    number = release(versions.get(_PACKAGE.get(config.trainer, ""), ""))
    return config.of_version(number), None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Limits:
    completion: Limit | None = None
    prompt: Limit | None = None
    context: Limit | None = None


def _limits(inputs: Inputs, config: TrainerConfig | None) -> _Limits:
    def limit(given: int | None, setting: Setting, name: str) -> Limit | None:
        if given is not None:
            return Limit(tokens=given, key=name)
        found = config.find(setting) if config is not None else None
        if config is None or found is None or found.number is None or found.number <= 0:
            return None
        return Limit(tokens=int(found.number), key=found.key, where=config.at(found))

    return _Limits(
        completion=limit(inputs.completion_limit, Setting.COMPLETION_LIMIT, "max_completion_length"),
        prompt=limit(inputs.prompt_limit, Setting.PROMPT_LIMIT, "max_prompt_length"),
        context=limit(inputs.context, Setting.CONTEXT, "max_position_embeddings"),
    )


def _read(inputs: Inputs, limits: _Limits) -> Iterator[DataReading]:
    options = DataOptions(
        prompt_key=inputs.prompt_key,
        answer_key=inputs.answer_key,
        count_tokens=inputs.count_tokens,
        row_tokens_max=limits.context.tokens if limits.context is not None else None,
        template=inputs.template,
        specials=inputs.specials,
    )
    paths = _paths(inputs.data)
    for path in paths:
        yield read_file(path, options, inputs.progress)
    # an iterator is the trainer's own to consume, and a stream would be downloaded
    if inputs.data is not None and not paths and hasattr(inputs.data, "__len__"):
        yield read_rows(inputs.data, type(inputs.data).__name__, options)


def _paths(data: Any) -> list[Path]:
    if isinstance(data, (str, Path)):
        return files_of(Path(data))
    if isinstance(data, (list, tuple)) and data and all(isinstance(item, (str, Path)) for item in data):
        return [path for item in data for path in files_of(Path(item))]
    return []


def _budget(readings: Iterable[DataReading], limits: _Limits) -> BudgetFacts:
    """Of the file with the most answers, since lengths of different columns don't add."""
    best = max(readings, key=lambda reading: (reading.answers.total, reading.prompts.total), default=None)
    return BudgetFacts(
        prompts=best.prompts if best is not None else None,
        answers=best.answers if best is not None else None,
        completion=limits.completion,
        prompt=limits.prompt,
        context=limits.context,
        answer_key=best.facts.answer_key if best is not None else "",
        labels=best is not None and best.facts.answer_key in LABEL_KEYS,
    )


def _cut_share(facts: BudgetFacts) -> float | None:
    answers: LengthFacts | None = facts.answers
    if answers is None or not answers.total or facts.completion is None:
        return None
    return answers.share_above(facts.completion.tokens)


def _judge_versions(
    versions: Mapping[str, str], config: TrainerConfig | None, *, given: bool
) -> Iterator[Finding]:
    """Packages of this run's trainer, and of the engine beside it; all that were named, where some were."""
    if not given and config is not None and config.trainer in _PACKAGE:
        wanted = (_PACKAGE[config.trainer], *_BESIDE)
        versions = {package: version for package, version in versions.items() if package in wanted}
    yield from judge_versions(versions, _in_use(config))


def _in_use(config: TrainerConfig | None) -> frozenset[str]:
    if config is None:
        return frozenset()
    used = {"vllm_enable_sleep_mode"} if config.on(Setting.SLEEP_MODE) else set()
    if config.values.get("max_prompt_length") is not None:
        used.add("max_prompt_length")
    if estimator_of(config) in ("k3", "low_var_kl"):
        used |= {"k3", "use_kl_loss"}
    return frozenset(used)


def _skipped(check: str, subject: str, why: str) -> Finding:
    return Finding(check=check, verdict=Verdict.SKIPPED, subject=subject, evidence=why)
