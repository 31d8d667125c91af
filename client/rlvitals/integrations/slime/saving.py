"""A checkpoint between two rollouts, by slime's own function, on all ranks."""

from __future__ import annotations

from typing import Any

NO_FOLDER = "slime was given no --save"
OVERLAPPED = (
    "with --overlap-param-gather Megatron cannot save where a rollout's first step begins; --save-interval can"
)


class Saver:
    """Keeps what slime's ``save`` takes. ``reason`` says why nothing can be saved, "" where it can."""

    def __init__(self, args: Any) -> None:
        self._args = args
        self._iteration = -1
        self._what: tuple[Any, Any, Any] = (None, None, None)
        overlapped = getattr(args, "use_distributed_optimizer", False) and getattr(
            args, "overlap_param_gather", False
        )
        self.reason = OVERLAPPED if overlapped else "" if getattr(args, "save", None) else NO_FOLDER

    def see(self, rollout_id: int, model: Any, optimizer: Any, scheduler: Any) -> None:
        """What is trained, before ``rollout_id``."""
        self._iteration, self._what = rollout_id - 1, (model, optimizer, scheduler)

    def save(self, step: int) -> str:
        """Collective. Saves as slime does after the rollout that was trained on last; returns the folder.

        Raises ValueError where none was trained on, and what slime raises.
        """
        if self._iteration < 0:
            raise ValueError("no rollout has been trained on yet")
        from slime.backends.megatron_utils.model import save

        self._finish()
        save(self._iteration, *self._what)
        self._finish()
        return f"{self._args.save}/iter_{self._iteration:07d}"

    def _finish(self) -> None:
        """Waits for a save in the background, of ours or before."""
        if getattr(self._args, "async_save", False):
            from megatron.training.async_utils import maybe_finalize_async_save

            maybe_finalize_async_save(blocking=True)
