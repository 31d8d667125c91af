"""The demo: a fresh service, two real GRPO runs that stream into it, and a person (or ``--auto``) who approves.

One run is unhealthy in two ways, its twin is sane. What should happen: the unhealthy one raises the truncation and
the kl_pull_dominates alerts, the second proposes a lower KL coefficient, it is approved, applied at the next step
boundary, and the signal answers; the twin stays silent. Exit code 0 only if all of that happened and no report was
lost.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
import webbrowser
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import demo_verdict
from demo_service import Child, Failed, Service, fresh_folder
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from rlvitals.contract.command import CommandState

HERE = Path(__file__).resolve().parent
FLAVOURS = ("unhealthy", "twin")
SANE_BETA = 4.0
"""A tenth of what the unhealthy run began with: as far as one command may go."""
LOOK_S = 25.0
"""How long a proposal stays on the page before ``--auto`` approves it."""
PERSON_SHARE = 0.6
"""Without ``--auto``: share of the time after which the demo stops waiting for a person."""
TRAINER_END_S, DRAIN_S = 240.0, 30.0
APPROVED = {state.value for state in (CommandState.PENDING, CommandState.DELIVERED, CommandState.APPLIED)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    seconds: float
    open: bool
    auto: bool
    port: int


def main(argv: list[str] | None = None) -> int:
    console = Console()
    options = _options(argv)
    try:
        return _demo(options, console)
    except KeyboardInterrupt:
        console.print("\nStopped.")
        return 130
    except Failed as error:
        console.print(f"[red]{error}[/red]")
        return 1


def _options(argv: list[str] | None) -> Options:
    env = os.environ
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seconds", type=float, default=float(env.get("DEMO_SECONDS") or 150))
    parser.add_argument("--port", type=int, default=int(env.get("DEMO_PORT") or 8642))
    parser.add_argument("--auto", action="store_true", help="approve the proposal without a person")
    told = parser.parse_args(argv)
    opened = (env.get("DEMO_OPEN") or "1") != "0"
    return Options(seconds=told.seconds, port=told.port, open=opened, auto=told.auto or not opened)


def _demo(options: Options, console: Console) -> int:
    folder = fresh_folder()
    with _children() as children:
        service = Service(folder, options.port)
        children.append(service.child)
        _teach(service, children, folder, console)
        service.wait_until_ready()
        console.print(f"Dashboard: [bold]{service.login}[/bold]", soft_wrap=True)
        if options.open:
            webbrowser.open(service.login)
        trainers = [_trainer(flavour, service, options, folder) for flavour in FLAVOURS]
        children += trainers
        _watch(service, trainers, options, console)
        told = [demo_verdict.collect(service, _summary(trainer, service)) for trainer in trainers]
        demo_verdict.show(console, told)
        broken = [promise for one in told for promise in demo_verdict.broken_promises(one)]
        for promise in broken:
            console.print(f"[red]✗ {promise}[/red]")
        if not broken:
            console.print("[green]✓ Both planted faults found, the twin silent, nothing lost.[/green]")
        if options.open:
            _keep_serving(service, console)
        else:
            again = f"{Path(sys.executable).parent / 'rlvitals'} serve --data {folder / 'data'}"
            console.print(f"To look at both runs again: {again}", soft_wrap=True)
        return 1 if broken else 0


@contextmanager
def _children() -> Iterator[list[Child]]:
    """Whatever happens, nobody is left behind: trainers first, so that their last reports are stored."""
    children: list[Child] = []
    try:
        yield children
    finally:
        for child in reversed(children):
            child.stop()


def _teach(service: Service, children: list[Child], folder: Path, console: Console) -> None:
    child = Child("teach", [sys.executable, str(HERE / "demo_policy.py")], service.env, folder)
    children.append(child)
    words = "Teaching a tiny Qwen2 its grammar (about half a minute on an idle machine, once) …"
    if not console.is_terminal:
        console.print(words)
    with console.status(words):
        while child.running:
            time.sleep(0.2)
    if child.code:
        raise Failed(f"the policy could not be taught; see {child.log}")


def _trainer(flavour: str, service: Service, options: Options, folder: Path) -> Child:
    command = [sys.executable, str(HERE / "demo_grpo.py"), "--flavour", flavour, "--run", f"demo-{flavour}"]
    return Child(flavour, [*command, "--seconds", str(options.seconds)], service.env, folder)


def _watch(service: Service, trainers: list[Child], options: Options, console: Console) -> None:
    """Until both trainers have ended by themselves."""
    shown = TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn(), TextColumn("{task.fields[news]}")
    with Progress(*shown, console=console) as progress:
        bar = progress.add_task("Streaming", total=options.seconds, news="starting the trainers …")
        began, first_report = time.monotonic(), 0.0
        while any(trainer.running for trainer in trainers):
            time.sleep(1.0)
            now = time.monotonic()
            if now - (first_report or began) > options.seconds + TRAINER_END_S:
                raise Failed("the trainers did not end in time; see .demo/*.log")
            seen = _news(service, progress, bar)
            first_report = first_report or (now if seen else 0.0)
            if first_report:
                progress.update(bar, completed=min(now - first_report, options.seconds))
                _approve(service, options, now - first_report, console)


def _news(service: Service, progress: Progress, bar: TaskID) -> bool:
    """Shows steps and open alerts; whether all trainers have reported."""
    runs = {run["id"]: run for run in service.items("/runs?project=demo")}
    steps = {f: (runs.get(f"demo-{f}") or {}).get("last_step") for f in FLAVOURS}
    firing = sum(run["firing"] for run in runs.values())
    told = ", ".join(f"{f} step {step if step is not None else '–'}" for f, step in steps.items())
    progress.update(bar, news=f"{told}; {firing} alert{'' if firing == 1 else 's'} open")
    return all(step is not None for step in steps.values())


def _approve(service: Service, options: Options, elapsed_s: float, console: Console) -> None:
    """Approves with a saner value, beyond the factor of 2 that an automatic change may use."""
    patience_s = 0.0 if options.auto else PERSON_SHARE * options.seconds
    if elapsed_s < max(patience_s, LOOK_S):
        return
    commands = [c for c in service.items("/commands?run=demo-unhealthy&limit=50") if c["kind"] == "set_kl_coef"]
    if any(command["state"] in APPROVED for command in commands):
        return
    for command in commands:
        if command["state"] == CommandState.PROPOSED.value:
            service.ask(f"/commands/{command['id']}/approve", {"argument": SANE_BETA})
            console.print(f"Approved set_kl_coef {SANE_BETA:g} (proposed: {command['argument']:.3g}).")
            return


def _summary(trainer: Child, service: Service) -> dict[str, object]:
    """The trainer's own last line, once the service has judged all that it reported."""
    if trainer.code != 0:
        raise Failed(f"the trainer {trainer.name!r} ended with code {trainer.code}; see {trainer.log}")
    summary: dict[str, object] = json.loads(trainer.last_line())
    until = time.monotonic() + DRAIN_S
    while time.monotonic() < until and service.ask(f"/runs/{summary['run']}")["last_step"] != summary["steps"]:
        time.sleep(0.3)
    return summary


def _keep_serving(service: Service, console: Console) -> None:
    console.print(f"The dashboard stays up at {service.url}/ui/ until Ctrl-C.", soft_wrap=True)
    while service.child.running:
        time.sleep(0.5)


if __name__ == "__main__":
    sys.exit(main())
