"""A clamp on the logits that completions are sampled from: a runaway or NaN logit no longer decides."""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING, Any

from rlvitals import notices
from rlvitals.guard import Guard
from rlvitals.probes.arguments import ProbeArgumentError
from rlvitals.probes.ledger import LEDGER
from rlvitals.probes.tally import Tally

if TYPE_CHECKING:
    from torch import Tensor

    from rlvitals.probes.reduction import Reduction

LIMIT = 50.0
_COUNTS = ("guard.rows", "guard.clamped_rows", "guard.clamped", "guard.nan")


class LogitsClamp:
    """A `transformers` logits processor: finite logits into -limit … limit, NaN never chosen, -Inf as it is.

    The price: tokens are then sampled from another distribution than the one whose log-probs the trainer computes,
    wherever something was clamped; ratios of trainer to sampler, and with them the update, are off by that. A row
    without any number stays as it is, so that a dead model still fails.
    """

    def __init__(self, limit: float = LIMIT) -> None:
        if not 0 < limit < math.inf:
            raise ProbeArgumentError("limit", "a finite number above 0", str(limit))
        self.limit = float(limit)
        self._found: Tensor | None = None
        LEDGER.watch(self)

    def __call__(self, input_ids: Any, scores: Tensor) -> Tensor:
        """``scores`` (B, V) → the same, clamped; a new tensor."""
        import torch

        nan, low = scores.isnan(), scores == -math.inf
        alive = (~nan & ~low).any(-1, keepdim=True)
        inside = torch.where(low, scores, scores.clamp(-self.limit, self.limit))
        clamped = torch.where(alive, torch.where(nan, torch.full_like(scores, -math.inf), inside), scores)
        with Guard("counting clamped logits"):
            beyond = (scores.abs() > self.limit) & ~low & alive
            broken = nan & alive
            changed = (beyond | broken).any(-1)
            row = [changed.numel() * torch.ones_like(changed.sum()), changed.sum(), beyond.sum(), broken.sum()]
            found = torch.stack(row).double()
            # not in place: the sum may have begun inside inference mode
            self._found = found if self._found is None else self._found + found
        return clamped

    def counted(self) -> Reduction | None:
        """What it did since the last time, still on its device."""
        from rlvitals.probes.reduction import Reduction

        found, self._found = self._found, None
        if found is None:
            return None
        return Reduction(parts=(found,), build=lambda parts: Tally(counts=_named(parts[0].tolist())))


def clamp_logits(model: Any, limit: float = LIMIT) -> LogitsClamp:
    """Switches the clamp on for all that ``model.generate`` samples; call it when the trainer has been made.

    Raises TypeError for a model that does not generate, `ProbeArgumentError` for a limit that is none.
    """
    original = getattr(model, "generate", None)
    if original is None:
        raise TypeError(f"{type(model).__name__} has no generate")
    clamp = LogitsClamp(limit)
    notices.once(
        "guard:clamp",
        f"logits are clamped to ±{limit:g} while sampling: where that happens the log-probs of sampler and "
        "trainer differ (guard.clamped_share)",
    )

    @functools.wraps(original)
    def generate(*args: Any, **kwargs: Any) -> Any:
        from transformers import LogitsProcessorList

        others = kwargs.pop("logits_processor", None) or []
        return original(*args, logits_processor=LogitsProcessorList([clamp, *others]), **kwargs)

    model.generate = generate
    return clamp


def _named(numbers: list[float]) -> dict[str, int]:
    return {name: int(number) for name, number in zip(_COUNTS, numbers, strict=True)}
