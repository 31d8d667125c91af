"""``rlvitals check``: what was named on the command line goes through the checks, and the report to the screen."""

from __future__ import annotations

import argparse
import os
import re
import shutil
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

from rlvitals import __version__
from rlvitals.guard import outcome
from rlvitals.preflight.command_line import scalar
from rlvitals.preflight.file_kind import read_regular
from rlvitals.preflight.finding import Finding, Report
from rlvitals.preflight.garble import spell_damage
from rlvitals.preflight.inputs import Inputs, check_inputs, context_of, counter, marker_of
from rlvitals.preflight.source import named_folder, tokenizer_of
from rlvitals.preflight.subject import Subject
from rlvitals.preflight.table import as_json, table
from rlvitals.preflight.terminal import coloured
from rlvitals.preflight.tokenization import check_tokenization
from rlvitals.preflight.tokenizer import read_tokenizer
from rlvitals.preflight.trainer_config import TrainerConfig, read_config
from rlvitals.preflight.trainer_keys import Trainer
from rlvitals.progress import ProgressBar
from rlvitals.screen import print_report

TOKENIZER_PACKAGES = ("transformers", "tokenizers", "numpy", "jinja2")
_HUB_NAME = re.compile(r"[\w.-]+/[\w.-]+")
DESCRIPTION = """\
Looks at what a training run is made of before its first step: tokenizer, chat template and model config (T),
data files (D), the length budget (L), trainer settings (C) and versions (V). Give what you have; what is missing
is skipped and said so. Nothing is downloaded, no weight is loaded, no GPU is used."""
EPILOG = """\
examples:
  rlvitals check --data train.jsonl
  rlvitals check --model ./Qwen2.5-7B --data train.parquet --config grpo.yaml
  rlvitals check --data train.jsonl --max-completion-length 1024
  rlvitals check --config run.sh --set trainer.save_freq=20
  rlvitals check -- python -m verl.trainer.main_ppo actor_rollout_ref.rollout.n=8 …

exit status: 0 all well or only to be known, 1 a warning with --strict, 2 a fatal finding or wrong arguments.
Every check is described in docs/check.md."""


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the checks; returns the exit status (0, 1 with ``--strict``, 2)."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    words: list[str] = []
    if "--" in arguments:
        at = arguments.index("--")
        arguments, words = arguments[:at], arguments[at + 1 :]
    parser = _parser()
    parsed = parser.parse_args(arguments)
    fault = _fault(parsed, words)
    if fault:
        sys.stderr.write(f"rlvitals check: {fault}\n")
        return 2
    report = Report.of(_findings(parsed, words))
    code = report.code(strict=parsed.strict)
    return _show(report, parsed, code)


def _show(report: Report, parsed: argparse.Namespace, code: int) -> int:
    """Prints the report; the exit status is 2 where it could not be written, and stays where nobody reads on."""
    columns = shutil.get_terminal_size().columns
    colour = coloured(sys.stdout, dict(os.environ))
    text = (
        as_json(report, __version__, code)
        if parsed.json
        else table(report, columns, colour=colour, show_all=parsed.all)
    )
    return print_report(text, "rlvitals check", code)


def _findings(parsed: argparse.Namespace, words: Sequence[str]) -> Iterator[Finding]:
    bar = ProgressBar(sys.stderr, "reading", shutil.get_terminal_size().columns)
    subject = Subject(
        tokenizer=parsed.tokenizer,
        model=parsed.model,
        generation_config=parsed.generation_config,
        chat_template=parsed.chat_template,
        response_template=parsed.response_template,
        data=list(parsed.data or ()) or None,
        trainer_config=_settings(parsed, words),
        other_tokenizers=dict(pair.split("=", 1) for pair in parsed.compare or ()),
        stop_ids=tuple(parsed.stop_id or ()),
        sampler_masks=parsed.sampler_masks,
    )
    given = tokenizer_of(subject)
    tokens = outcome(read_tokenizer, given)[0] if given is not None else None
    if given is not None or parsed.model is not None:
        yield from check_tokenization(replace(subject, tokenizer=given if tokens is None else tokens.source))
    template = _template(parsed.chat_template) or (tokens.chat_template if tokens is not None else None)
    try:
        yield from check_inputs(
            Inputs(
                data=parsed.data or None,
                prompt_key=parsed.prompt_key,
                answer_key=parsed.answer_key,
                config=parsed.config or (words or None),
                overrides=_overrides(parsed),
                trainer=parsed.trainer,
                world_size=parsed.world_size,
                versions=dict(text.split("==", 1) for text in parsed.package) if parsed.package else None,
                completion_limit=parsed.max_completion_length,
                prompt_limit=parsed.max_prompt_length,
                context=parsed.context_length or context_of(named_folder(parsed.model)),
                count_tokens=counter(tokens),
                template=marker_of(template),
                specials=frozenset(tokens.added.values()) if tokens is not None else frozenset(),
                spelt=spell_damage(tokens),
                progress=bar,
            )
        )
    finally:
        bar.close()


def _template(given: str | None) -> str | None:
    if given is None or "{" in given:
        return given
    return outcome(read_regular, Path(given))[0]


def _settings(parsed: argparse.Namespace, words: Sequence[str]) -> TrainerConfig | None:
    """The settings for the checks of the tokenizer; what can't be read is told with the other settings."""
    if not (parsed.config or words or parsed.set):
        return None
    return outcome(read_config, parsed.config or words, _overrides(parsed), parsed.trainer)[0]


def _overrides(parsed: argparse.Namespace) -> dict[str, object]:
    return dict(_pair(text) for text in parsed.set or ())


def _pair(text: str) -> tuple[str, object]:
    key, _, value = text.partition("=")
    return key.lstrip("+-").replace("-", "_"), scalar(value)


def _fault(parsed: argparse.Namespace, words: Sequence[str]) -> str:
    """What was named and is not there, or nothing named at all; empty if all is well."""
    named = (parsed.tokenizer, parsed.model, parsed.data, parsed.config, parsed.set, words, parsed.package)
    if not any(named):
        return "nothing to check: give --tokenizer, --model, --data or --config (see rlvitals check --help)"
    if parsed.config and words:
        return "settings come from --config or from the words after --, not from both"
    for option, path in _paths(parsed):
        if not os.path.exists(path) and not (option in ("--tokenizer", "--model") and _HUB_NAME.fullmatch(path)):
            return f"{option}: no such file or folder: {path}"
    for option, texts, mark in (("--set", parsed.set, "="), ("--compare", parsed.compare, "=")):
        wrong = next((text for text in texts or () if mark not in text), None)
        if wrong is not None:
            return f"{option}: expected NAME{mark}VALUE, got {wrong!r}"
    wrong = next((text for text in parsed.package or () if "==" not in text), None)
    if wrong is not None:
        return f"--package: expected NAME==VERSION, got {wrong!r}"
    return _missing_packages(parsed)


def _paths(parsed: argparse.Namespace) -> Iterator[tuple[str, str]]:
    for option in ("tokenizer", "model", "generation_config", "config"):
        if getattr(parsed, option) is not None:
            yield f"--{option.replace('_', '-')}", getattr(parsed, option)
    for path in parsed.data or ():
        yield "--data", path


def _missing_packages(parsed: argparse.Namespace) -> str:
    if parsed.tokenizer is None and parsed.model is None:
        return ""
    missing = [package for package in TOKENIZER_PACKAGES if find_spec(package) is None]
    if not missing:
        return ""
    return f"a tokenizer needs {', '.join(missing)}. Install it with: pip install 'rlvitals[check]'"


def _positive(text: str) -> int:
    try:
        number = int(text)
    except ValueError:
        number = 0
    if number <= 0:
        raise argparse.ArgumentTypeError(f"expected a number above 0, got {text}")
    return number


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="rlvitals check",
        description=DESCRIPTION,
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    what = parser.add_argument_group("what to check")
    what.add_argument("--tokenizer", metavar="DIR", help="folder or file of the tokenizer (default: the model's)")
    what.add_argument(
        "--model", metavar="DIR", help="folder of the model: config.json is read, weights are not loaded"
    )
    what.add_argument("--generation-config", metavar="FILE", help="generation_config.json (default: the model's)")
    what.add_argument(
        "--chat-template", metavar="TEXT|FILE", help="another chat template than the tokenizer's own"
    )
    what.add_argument("--response-template", metavar="TEXT", help="the marker at which your loss mask begins")
    what.add_argument(
        "--compare", metavar="ROLE=DIR", action="append", help="another tokenizer that must be the same"
    )
    what.add_argument(
        "--stop-id", metavar="ID", action="append", type=int, help="an id at which your sampler stops"
    )
    what.add_argument(
        "--sampler-masks",
        action=argparse.BooleanOptionalAction,
        help="whether your sampler never draws ids without a token (default: unknown)",
    )
    what.add_argument(
        "--data",
        metavar="FILE",
        nargs="+",
        action="extend",
        help="JSONL, JSON, CSV, TSV (also .gz) or Parquet; a folder stands for its files",
    )
    what.add_argument(
        "--prompt-key", metavar="KEY", default="", help="column of the prompts (default: found by name)"
    )
    what.add_argument(
        "--answer-key", metavar="KEY", default="", help="column of the answers (default: found by name)"
    )
    what.add_argument("--config", metavar="FILE", help="YAML, JSON, or a script with the trainer's command line")
    what.add_argument("--set", metavar="KEY=VALUE", action="append", help="one setting, over what the file says")
    what.add_argument(
        "--trainer",
        type=_trainer,
        metavar="NAME",
        help="TRL, verl, OpenRLHF or slime (default: known by the settings' names)",
    )
    what.add_argument(
        "--package",
        metavar="NAME==VERSION",
        action="append",
        help="a version to judge (default: those installed here)",
    )
    limits = parser.add_argument_group("limits, where the settings do not say them")
    limits.add_argument("--max-completion-length", metavar="N", type=_positive, help="tokens of an answer")
    limits.add_argument("--max-prompt-length", metavar="N", type=_positive, help="tokens of a prompt")
    limits.add_argument(
        "--context-length", metavar="N", type=_positive, help="tokens of both (default: the model's)"
    )
    limits.add_argument("--world-size", metavar="N", type=_positive, help="number of training processes")
    output = parser.add_argument_group("output")
    output.add_argument("--json", action="store_true", help="the report as JSON")
    output.add_argument("--all", action="store_true", help="a line for every check, the well ones too")
    output.add_argument("--strict", action="store_true", help="exit status 1 for a warning")
    return parser


def _trainer(name: str) -> Trainer:
    known = {trainer.value.lower(): trainer for trainer in Trainer if trainer is not Trainer.UNKNOWN}
    if name.lower() not in known:
        raise argparse.ArgumentTypeError(
            f"expected one of {', '.join(t.value for t in known.values())}, got {name!r}"
        )
    return known[name.lower()]
