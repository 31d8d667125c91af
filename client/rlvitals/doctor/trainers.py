"""Which trainers are installed, whether our plug-in would be loaded, and what its hooks would find there."""

from __future__ import annotations

import contextlib
import importlib
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime, timezone
from importlib.metadata import EntryPoint, PackageNotFoundError, entry_points, version
from importlib.util import find_spec
from typing import Any

from rlvitals.contract.hooks import HookState, HookTableView, HookView, read_table
from rlvitals.doctor.finding import Finding, State
from rlvitals.guard import attempt, outcome

SECTION = "trainers"
TRAINERS = ("trl", "verl", "openrlhf", "slime")
LINES = {
    "trl": ("the line: rlvitals.attach(trainer)",),
    "openrlhf": ("the line: python -m rlvitals.integrations.openrlhf.launch -m openrlhf.cli.train_ppo_ray …",),
    "slime": ("the line: --custom-rollout-log-function-path rlvitals.integrations.slime.log_rollout …",),
}
SUPPORT = "rlvitals.integrations.{name}.support"
PLUGINS = "verl.plugins"
ENTRY_POINTS_SINCE, EXTERNAL_MODULES_SINCE = (0, 9), (0, 6)
"""Releases of verl that load plug-ins by entry point, and by ``VERL_USE_EXTERNAL_MODULES``."""
_ERROR = re.compile(r"\w*(?:Error|Exception)\b")
"""How a reason begins that is an exception's own words."""
_WORDS = {
    HookState.PATCHED: "found",
    HookState.ABSENT: "ABSENT",
    HookState.SEEN: "sees",
    HookState.BLIND: "BLIND",
    HookState.FAILING: "FAILS",
}


def examine_trainers(env: Mapping[str, str], *, names: Sequence[str] = TRAINERS) -> Iterator[Finding]:
    """Of each trainer that is installed; imports them, and says on stderr what they print."""
    there = [name for name in names if is_installed(name)]
    if not there:
        known = ", ".join(names)
        yield Finding(
            section=SECTION,
            state=State.NOTE,
            told=f"no trainer is installed here (known: {known}); a loop of your own needs none",
        )
    for name in there:
        yield from _trainer(name, env)


def is_installed(name: str) -> bool:
    return attempt(find_spec, name) is not None


def release(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return ""


def _trainer(name: str, env: Mapping[str, str]) -> Iterator[Finding]:
    if name == "verl":
        yield _verl_loads_us(release(name), env, list(entry_points(group=PLUGINS)))
    with contextlib.redirect_stdout(sys.stderr):
        support, error = _survived(importlib.import_module, SUPPORT.format(name=name))
        hooks: Callable[[], Any] | None = getattr(support, "hooks", None)
        table, error = _survived(hooks) if hooks is not None else (None, error or "it has no hooks()")
    if table is None:
        yield _unimportable(name, release(name), error)
        return
    yield judge(name, _seen(table), tuple(getattr(support, "VERSIONS", ())), release(name))


def _survived(call: Callable[..., Any], *arguments: str) -> tuple[Any, str]:
    """Some packages end the interpreter where they miss something."""
    try:
        return outcome(call, *arguments)
    except SystemExit as end:
        return None, f"it ends the interpreter ({end.code})"


def _unimportable(name: str, installed: str, error: str, table: HookTableView | None = None) -> Finding:
    """No fault of ours to find: a job of it would not start, and says so itself."""
    told = f"{name} {installed} can't be imported here, so nothing trains with it: {error}"
    return Finding(section=SECTION, state=State.NOTE, told=told, table=table)


def _seen(table: Any) -> HookTableView:
    told = {"framework": table.framework, "version": table.version, "steps": table.steps, "hooks": table.rows()}
    return read_table(told, attempt="", writer="", at=datetime.now(timezone.utc))


def judge(name: str, table: HookTableView, tried: Sequence[str], installed: str) -> Finding:
    """A needed hook that a tried release has not is known; in one that nobody tried it is a finding. Pure."""
    known = table.version or installed
    is_tried = known in tried
    absent = [h for h in table.hooks if h.state is HookState.ABSENT and not h.optional]
    found = [h for h in table.hooks if h.state is not HookState.ABSENT]
    if absent and not found and all(_ERROR.match(hook.why) for hook in absent):
        return _unimportable(name, known, absent[0].why, table)
    said = "tried" if is_tried else f"untried (tried: {', '.join(tried) or 'none'})"
    count = f"{len(found)} of {len(found) + len(absent)} hooks found"
    state, fix = State.OK if is_tried else State.NOTE, ""
    if absent and (not is_tried or not found):
        state = State.WRONG
        fix = "what absent hooks give stays missing, which the run page says too"
        fix += "" if is_tried else "; a release that was tried has them"
    return Finding(
        section=SECTION,
        state=state,
        told=f"{name} {known}, {said}: {count}",
        fix=fix,
        rows=(*LINES.get(name, ()), *(row_of(hook) for hook in table.hooks)),
        table=table,
    )


def row_of(hook: HookView) -> str:
    """``found   batch  PPOTrainer._compute_metrics``, with reason and loss where it is not well."""
    missing = f"; missing: {hook.gives}" if hook.gives and hook.is_fault else ""
    word = "absent" if hook.state is HookState.ABSENT and hook.optional else _WORDS[hook.state]
    seen = f", seen {hook.seen} time{'' if hook.seen == 1 else 's'}" if hook.seen else ""
    why = f": {hook.why}" if hook.why else ""
    return f"{word:7} {hook.hook}  {hook.target}{seen}{why}{missing}"


def _verl_loads_us(installed: str, env: Mapping[str, str], points: Sequence[EntryPoint]) -> Finding:
    """Whether a job of this verl would load the plug-in in its processes. Pure."""
    ways = _ways(installed, env, points)
    active = [told for told, on in ways if on]
    if active:
        return Finding(section=SECTION, state=State.OK, told=f"verl loads our plug-in: {active[0]}")
    numbers = release_numbers(installed)
    if numbers >= ENTRY_POINTS_SINCE:
        fix = "install rlvitals into this environment again, and leave VERL_USE_EXTERNAL_PLUGINS at auto"
    elif numbers >= EXTERNAL_MODULES_SINCE:
        fix = "export VERL_USE_EXTERNAL_MODULES=rlvitals.integrations.verl"
    else:
        fix = "export RAY_RUNTIME_ENV_HOOK=rlvitals.integrations.verl.ray_hook.add_setup"
    told = f"nothing loads our plug-in into verl {installed}: the run would not be seen"
    return Finding(section=SECTION, state=State.WRONG, told=told, fix=fix, rows=tuple(t for t, _ in ways))


def _ways(installed: str, env: Mapping[str, str], points: Sequence[EntryPoint]) -> list[tuple[str, bool]]:
    numbers = release_numbers(installed)
    ours = any(point.value.startswith("rlvitals.") for point in points)
    allowed = env.get("VERL_USE_EXTERNAL_PLUGINS", "auto").strip() or "auto"
    chosen = allowed == "auto" or "rlvitals" in [name.strip() for name in allowed.split(",")]
    modules, hook = env.get("VERL_USE_EXTERNAL_MODULES", ""), env.get("RAY_RUNTIME_ENV_HOOK", "")
    return [
        (
            f"entry point {PLUGINS} ({'there' if ours else 'not there'}; VERL_USE_EXTERNAL_PLUGINS={allowed})",
            ours and chosen and numbers >= ENTRY_POINTS_SINCE,
        ),
        (
            f"VERL_USE_EXTERNAL_MODULES={modules}" if modules else "VERL_USE_EXTERNAL_MODULES is not set",
            "rlvitals.integrations.verl" in modules.split(",") and numbers >= EXTERNAL_MODULES_SINCE,
        ),
        (
            f"RAY_RUNTIME_ENV_HOOK={hook}" if hook else "RAY_RUNTIME_ENV_HOOK is not set",
            hook.startswith("rlvitals."),
        ),
    ]


def release_numbers(text: str) -> tuple[int, ...]:
    """``0.9.1`` gives (0, 9, 1); one that is not known counts as new."""
    numbers = []
    for part in text.split("."):
        if not part.isdecimal():
            break
        numbers.append(int(part))
    return tuple(numbers) or (1 << 30,)
