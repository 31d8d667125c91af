"""The sidecar: follows what a trainer writes anyway and feeds a `Reporter`, without a line of code in the job.

``rlvitals tail PATH…`` takes console logs, JSON lines, CSV, ``trainer_state.json``, event files and W&B's offline
files, or a folder to look for them in, and the completions that trainers dump (`rlvitals.formats.dumps`). It sees
what the trainer writes and no more: no sampled token, no ratio.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from rlvitals.formats.dumps import is_dump, step_of_name
from rlvitals.formats.growing import Growing
from rlvitals.formats.row import BadLine, Row
from rlvitals.formats.steps import LoggedStep, StepMerger, stride
from rlvitals.reporter import Reporter
from rlvitals.screen import print_report, printable
from rlvitals.tail_dumps import Dumps

if TYPE_CHECKING:
    from rlvitals.integrations.dumps import Texts

POLL_S = 1.0
IDLE_S = 30.0
"""After so long without a new line a step that waits for more is taken as complete."""
FLUSH_S, FLUSH_TRIES = 60.0, 3
KNOWN = ("trainer_state.json", "*.jsonl", "events.out.tfevents.*", "*.wandb", "*.log", "*.out", "*.txt")
FILES_MAX = 64


class Tail:
    """Follows files into a reporter; ``poll`` does one round and says how many steps it reported."""

    def __init__(
        self,
        paths: Sequence[Path],
        reporter: Reporter,
        *,
        stride: int = 1,
        dumps: Dumps | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.merger = StepMerger(stride)
        self.bad: list[BadLine] = []
        self.bad_count = 0
        self._files = [Growing(path) for path in paths]
        self._reporter, self._clock = reporter, clock
        self._dumps = dumps or Dumps(())
        self._idle_since = clock()

    def poll(self) -> int:
        """Reads what is new. A file that can't be read now is tried again at the next round."""
        self._see_dumps(ended=False)
        steps = [step for file in self._files for item in self._read(file) for step in self._taken(item)]
        quiet = not steps and self._clock() - self._idle_since >= IDLE_S
        if steps:
            self._idle_since = self._clock()
        elif quiet:
            steps = self.settle()
        return self._report(steps, alone=quiet or not self._files)

    def finish(self) -> int:
        """Reports what still waits for more; the job has ended."""
        self._see_dumps(ended=True)
        held = [
            step for file in self._files for item in self._read(file, ended=True) for step in self._taken(item)
        ]
        count = self._report(held + list(self.merger.end()), alone=True)
        self._see_dumps(ended=True)  # for what could not be read
        return count

    def settle(self) -> list[LoggedStep]:
        held = [step for file in self._files for item in file.settle() for step in self._taken(item)]
        return held + list(self.merger.end())

    def _read(self, file: Growing, *, ended: bool = False) -> list[Row | BadLine]:
        found: list[Row | BadLine] = []
        try:
            found.extend(file.drain() if ended else file.rows())
        except (OSError, ValueError) as error:
            self._bad(BadLine.of(0, f"{file.path}: {error}", ""))
        return found

    def _taken(self, item: Row | BadLine) -> Iterator[LoggedStep]:
        if isinstance(item, Row):
            yield from self.merger.add(item)
        else:
            self._bad(item)

    @property
    def late(self) -> int:
        """Dumps that came after their step had been reported, which are left out."""
        return self._dumps.late

    def _bad(self, line: BadLine) -> None:
        if not line.line and line in self.bad:  # a file that is still not there is no further broken line
            return
        self.bad_count += 1
        if len(self.bad) < 20 and line not in self.bad:
            self.bad.append(line)
            where = f"line {line.line}: " if line.line else ""
            _say(f"rlvitals tail: {where}{line.reason} {line.text!r}".rstrip(" '"), sys.stderr)

    def _see_dumps(self, *, ended: bool) -> None:
        for line in self._dumps.look(ended=ended):
            self._bad(line)

    def _report(self, steps: Sequence[LoggedStep], *, alone: bool) -> int:
        """With each step its dump, and before it those that no log tells of; ``alone``: all that are left too."""
        count = 0
        for step in steps:
            if step.evaluation:
                self._reporter.report(step.step, step.values, missing=_absent(step))
                count += 1
                continue
            count += self._report_dumps(before=step.step)
            self._report_step(step.step, step.values, _absent(step), self._dumps.take(step.step))
            count += 1
        return count + (self._report_dumps(before=None) if alone else 0)

    def _report_dumps(self, before: int | None) -> int:
        count = 0
        for step in self._dumps.waiting(before):
            texts = self._dumps.take(step)
            if texts is not None:
                self._report_step(step, {}, {}, texts)
                count += 1
        return count

    def _report_step(
        self, step: int, values: Mapping[str, Any], missing: Mapping[str, str], texts: Texts | None
    ) -> None:
        self._dumps.passed = step
        if texts is None:
            self._reporter.report(step, values, missing=missing)
            return
        # what the trainer logged itself goes before what its dump says again
        found = {**texts.values, **values}
        reasons = {name: why for name, why in {**texts.missing, **missing}.items() if name not in found}
        extremes = {name: extreme for name, extreme in texts.extremes.items() if name not in values}
        self._reporter.report(step, found, missing=reasons, extremes=extremes)
        for sample in texts.samples:
            self._reporter.text(
                step, sample.sample, sample.completion, prompt=sample.prompt, reward=sample.reward, why=sample.why
            )


def _absent(step: LoggedStep) -> dict[str, str]:
    return {**step.withheld, **dict.fromkeys(step.missing, "the trainer logged null")}


def files(paths: Sequence[Path]) -> list[Path]:
    """The files meant by ``paths``; in a folder those that look like logs, the newest first."""
    found: list[Path] = []
    for path in paths:
        if path.is_dir():
            matching = {file for pattern in KNOWN for file in path.rglob(pattern)}
            inside = {file for file in matching if file.is_file() and not is_dump(file)}
            found += sorted(inside, key=lambda file: (-file.stat().st_mtime, str(file)))
        elif step_of_name(path) is None or not is_dump(path):
            found.append(path)
    return list(dict.fromkeys(found))[:FILES_MAX]


def main(argv: Sequence[str]) -> int:
    """0: the files were followed to their end and the service has it all; 1: it has not; 2: nothing to follow."""
    told = _parser().parse_args(argv)
    absent = [path for path in told.paths if not path.exists()]
    chosen, dumps = files(told.paths), Dumps(told.paths, tokenizer=told.tokenizer, texts=not told.no_texts)
    if absent or not (chosen or dumps.any()):
        what = ", ".join(map(str, absent)) or "no log in the folder"
        _say(f"rlvitals tail: expected a log file or a folder with logs: {what}", sys.stderr)
        return 2
    fault = dumps.prepare()
    if fault:
        _say(f"rlvitals tail: {fault}", sys.stderr)
        return 2
    import rlvitals

    named = chosen[0].stem if chosen else told.paths[0].name
    reporter = rlvitals.init(
        project=told.project, run=told.run, name=told.name or named, framework="tail", url=told.url
    )
    return follow(Tail(chosen, reporter, stride=told.every, dumps=dumps), reporter, once=told.once)


def follow(tail: Tail, reporter: Reporter, *, once: bool, wait: Callable[[float], object] = time.sleep) -> int:
    """Polls until interrupted, or through once; says what the log held. 1 where the service has not all of it."""
    steps = 0
    try:
        steps += tail.poll()
        while not once:
            wait(POLL_S)
            steps += tail.poll()
    except KeyboardInterrupt:
        pass
    steps += tail.finish()
    left = undelivered(reporter)
    reporter.close()
    unknown = tail.merger.unknown
    late = tail.merger.late + tail.late
    _say(f"{steps} steps reported to run {reporter.run.id}, {tail.bad_count} broken lines, {late} late")
    if unknown:
        _say(f"  kept under their own names: {', '.join(unknown[:20])}{' …' if len(unknown) > 20 else ''}")
    if left:
        _say(f"rlvitals tail: NOT ALL OF IT WAS TAKEN by {reporter.settings.url}: {left}", sys.stderr)
        _say(f"  the rest waits in {reporter.settings.spool}: `rlvitals sync` sends it", sys.stderr)
    return 1 if left else 0


def undelivered(reporter: Reporter) -> str:
    """Waits as long as the service goes on taking what there is; "" where it has all, else why not."""
    reached, tries = -1.0, 0
    while not reporter.flush(FLUSH_S, patient=False):
        now = reporter.counters["acknowledged_seq"]
        tries = 0 if now > reached else tries + 1
        reached = max(reached, now)
        if tries >= FLUSH_TRIES:
            return reporter.last_error or "it does not answer"
    return ""


def _say(text: str, where: TextIO | None = None) -> None:
    if where is None:
        print_report(f"{printable(text)}\n", "rlvitals tail", 0)
    else:
        where.write(f"{printable(text)}\n")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="rlvitals tail",
        description="Follow a trainer's own logs and report what they say; no code in the job.",
    )
    parser.add_argument("paths", nargs="+", type=Path, help="log files, or folders with logs")
    parser.add_argument("--once", action="store_true", help="read what is there and stop")
    parser.add_argument(
        "--every", type=stride, default=1, metavar="N", help="steps between lines that say no step"
    )
    parser.add_argument(
        "--tokenizer",
        metavar="PATH",
        help="the model's tokenizer, for dumped completions: a folder or a hub's name",
    )
    parser.add_argument("--no-texts", action="store_true", help="send counts only, no completion and no prompt")
    parser.add_argument("--run", help="the run's id; the same id again is another attempt of the same run")
    parser.add_argument("--name", default="", help="the run's name (default: the file's)")
    parser.add_argument("--project", help="the project (default: as the client finds it)")
    parser.add_argument("--url", help="the service (default: as the client finds it)")
    return parser
