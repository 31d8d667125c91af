"""V1 and V2: releases that are known to go wrong with RL, as a table with public references."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from rlvitals.preflight.finding import Finding, Verdict

Release = tuple[int, ...]
PACKAGES = ("trl", "verl", "openrlhf", "slime", "transformers", "vllm", "torch", "rlvitals")
_RELEASE = re.compile(r"^[vV]?(?:\d+!)?(\d+(?:\.\d+)*)")


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownFault:
    """Releases of a package from ``since`` and below ``before`` (None: all that are known to us).

    ``only_with`` names the setting that is needed for it, as people write it; empty if it always is.
    """

    package: str
    since: Release = ()
    before: Release | None = None
    verdict: Verdict
    what: str
    fix: str
    reference: str
    only_with: str = ""


FAULTS: tuple[KnownFault, ...] = (
    KnownFault(
        package="trl",
        since=(0, 26),
        before=(1, 10),
        verdict=Verdict.FATAL,
        what="vLLM samples from the weights on disk, not the trained ones: the reward is a frozen policy's",
        fix="upgrade trl to 1.10, or vllm_enable_sleep_mode = false",
        reference="huggingface/trl#5312",
        only_with="vllm_enable_sleep_mode",
    ),
    KnownFault(
        package="trl",
        before=(1, 0),
        verdict=Verdict.WARN,
        what="one NaN or None reward makes every averaged metric NaN",
        fix="upgrade trl, or return finite rewards",
        reference="huggingface/trl#4501",
    ),
    KnownFault(
        package="trl",
        since=(1, 0),
        verdict=Verdict.INFO,
        what="NaN values are left out of logged averages: a NaN step looks clean in the log",
        fix="watch the values below that filter: rlvitals.attach(trainer)",
        reference="huggingface/trl#6772",
    ),
    KnownFault(
        package="trl",
        before=(1, 10),
        verdict=Verdict.INFO,
        what="the completion limit is 256 where none is set, and cut nearly all answers of public runs",
        fix="set max_completion_length",
        reference="huggingface/trl#5697",
    ),
    KnownFault(
        package="trl",
        since=(1, 0),
        verdict=Verdict.WARN,
        what="GRPOConfig has no max_prompt_length: it raises, or is left out, and no prompt is cut",
        fix="take it out and filter long prompts from the data; --max-prompt-length judges them by your own limit",
        reference="huggingface/trl#5964",
        only_with="max_prompt_length",
    ),
    KnownFault(
        package="verl",
        before=(0, 4, 1),
        verdict=Verdict.FATAL,
        what="low_var_kl is clamped after exp only: a finite loss with a NaN gradient",
        fix="upgrade verl to 0.4.1 or newer",
        reference="verl-project/verl#891",
        only_with="use_kl_loss",
    ),
    KnownFault(
        package="verl",
        before=(0, 4, 0),
        verdict=Verdict.WARN,
        what="a gradient that is not finite is applied: one NaN makes all weights NaN",
        fix="upgrade verl to 0.4.0 or newer, which skips such a step",
        reference="verl-project/verl#747",
    ),
    KnownFault(
        package="verl",
        since=(0, 9),
        verdict=Verdict.INFO,
        what="response_length/clip_ratio compares with the longest answer of the batch, so it is never 0",
        fix="do not alarm on it; RL Vitals computes length.truncation_rate from the limit",
        reference="verl-project/verl#7817",
    ),
    KnownFault(
        package="verl",
        verdict=Verdict.INFO,
        what="response_length/clip_ratio is 0 for ever where max_model_len ends answers first",
        fix="set max_model_len to at least max_prompt_length + max_response_length",
        reference="verl-project/verl#7823",
    ),
    KnownFault(
        package="openrlhf",
        before=(0, 11, 2),
        verdict=Verdict.WARN,
        what="the k3 estimator's gradient is NaN for a token 88.7 nats below the reference, the loss stays finite",
        fix="upgrade openrlhf to 0.11.2, or --algo.kl.estimator k2",
        reference="OpenRLHF/OpenRLHF#1335",
        only_with="k3",
    ),
    KnownFault(
        package="openrlhf",
        verdict=Verdict.INFO,
        what="response_clip_ratio counts total length, not truncation: 0 while nearly all answers are cut",
        fix="read rollout/truncated_rate",
        reference="OpenRLHF/OpenRLHF#1036",
    ),
    KnownFault(
        package="vllm",
        before=(0, 10, 2),
        verdict=Verdict.INFO,
        what="sleep level 2 does not restore the weights",
        fix="upgrade vllm, or no sleep mode",
        reference="huggingface/trl#4296",
        only_with="vllm_enable_sleep_mode",
    ),
    KnownFault(
        package="vllm",
        before=(0, 17),
        verdict=Verdict.INFO,
        what="log-probs differ from the trainer's on hybrid models such as Nemotron 3 Nano",
        fix="upgrade vllm, or watch the mismatch rules",
        reference="NVIDIA-NeMo/RL#2128",
    ),
)


def release(version: str) -> Release | None:
    """``1.9.2.post1`` as (1, 9, 2); None for what is no version."""
    match = _RELEASE.match(version.strip())
    return tuple(int(part) for part in match.group(1).split(".")[:6]) if match is not None else None


def shown(version: Release | None) -> str:
    return ".".join(map(str, version)) if version else "of unknown version"


def installed(packages: Iterable[str] = PACKAGES) -> dict[str, str]:
    """Versions of what is installed in this environment, without importing it."""
    from importlib.metadata import PackageNotFoundError, version

    found: dict[str, str] = {}
    for package in packages:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


def judge_versions(versions: Mapping[str, str], in_use: frozenset[str] = frozenset()) -> Iterator[Finding]:
    """``in_use`` are the settings (words of ``only_with``) that the run is known to have switched on."""
    clean = True
    for package, version in sorted(versions.items()):
        number = release(version)
        if number is None:
            continue
        for fault in FAULTS:
            if (
                fault.package == package
                and _covers(fault, number)
                and (not fault.only_with or fault.only_with in in_use)
            ):
                clean = clean and fault.verdict is Verdict.INFO
                yield _finding(fault, version)
    if clean and versions:
        told = ", ".join(f"{package} {version}" for package, version in sorted(versions.items()))
        yield Finding(check="V1", verdict=Verdict.OK, subject="No release known to go wrong", evidence=told)
    if not versions:
        yield Finding(
            check="V1", verdict=Verdict.SKIPPED, subject="Versions", evidence="no package of a trainer to judge"
        )
    yield from _namesake(versions)


def _covers(fault: KnownFault, number: Release) -> bool:
    return number >= fault.since and (fault.before is None or number < fault.before)


def _finding(fault: KnownFault, version: str) -> Finding:
    span = f"{'' if not fault.since else f'from {shown(fault.since)} '}"
    span += f"before {shown(fault.before)}" if fault.before else "up to today's"
    needs = f" with {fault.only_with}" if fault.only_with else ""
    return Finding(
        check="V1",
        verdict=fault.verdict,
        subject=f"{fault.package} {version}: {fault.what}",
        evidence=f"{fault.package} {span}{needs} ({fault.reference})",
        fix=fault.fix,
        where=f"{fault.package} {version}",
    )


def _namesake(versions: Mapping[str, str]) -> Iterator[Finding]:
    if release(versions.get("slime", "")) == (0, 0, 0):
        yield Finding(
            check="V2",
            verdict=Verdict.WARN,
            subject="The installed slime is another project",
            evidence="slime 0.0.0 from the package index is not THUDM's",
            fix="pip uninstall slime; install github.com/THUDM/slime",
            where="slime 0.0.0",
        )
