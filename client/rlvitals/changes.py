"""What commands have done so far to the numbers that they change, in this process and the run's earlier ones."""

from __future__ import annotations

import math
from dataclasses import dataclass

from rlvitals.contract.command import ARGUMENT_KINDS, Command, CommandKind

Number = tuple[CommandKind, str]
"""A kind, and which knob."""


@dataclass(slots=True)
class Course:
    """One number's: ``value`` in force (of the learning rate its factor), and before the last change and step."""

    value: float | None
    before: float | None
    before_step: float | None
    step: int


class Changes:
    """``taken`` counts at once, so that a second command at the same step is judged as if the first were done."""

    def __init__(self) -> None:
        self.count = 0
        self._courses: dict[Number, Course] = {}

    def of(self, command: Command) -> Course | None:
        return self._courses.get((command.kind, command.knob))

    def made_before(self, command: Command, step: int) -> None:
        """By an earlier process of the run: it counts and the cool-down runs, but a new process begins at the
        user's own value.
        """
        if command.kind in ARGUMENT_KINDS:
            self._courses[command.kind, command.knob] = Course(None, None, None, step)
            self.count += 1

    def taken(self, command: Command, step: int, in_force: float | None) -> None:
        """``in_force`` as far as anybody knows it."""
        if command.kind not in ARGUMENT_KINDS or command.argument is None:
            return
        scales = command.kind is CommandKind.SCALE_LR
        now = 1.0 if scales and in_force is None else in_force
        value = command.argument * now if scales and now is not None else command.argument
        last = self.of(command)
        first = last.before_step if last is not None and last.step == step else now
        self._courses[command.kind, command.knob] = Course(value, now, first, step)
        self.count += 1

    def applied(self, command: Command, after: float | None) -> None:
        """``after`` as read back; a learning rate says nothing of its factor."""
        course = self.of(command)
        known = after is not None and math.isfinite(after)
        if course is not None and known and command.kind is not CommandKind.SCALE_LR:
            course.value = after

    def refused(self, command: Command) -> None:
        """It was taken, and nothing came of it; the cool-down runs all the same."""
        course = self.of(command)
        if course is not None:
            course.value = course.before
            self.count -= 1
