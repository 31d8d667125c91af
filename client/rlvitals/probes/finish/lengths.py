"""Completion lengths and how completions end."""

from __future__ import annotations

from rlvitals.probes.finish.tables import NO_COMPLETIONS, Family

LENGTHS = Family(
    quotients={
        "length.mean": ("length.tokens", "length.completions", 1.0, NO_COMPLETIONS),
        "length.truncation_rate": ("length.truncated", "length.completions", 1.0, NO_COMPLETIONS),
        "length.stop_rate": ("length.stopped", "length.completions", 1.0, NO_COMPLETIONS),
        "length.empty_rate": ("length.empty", "length.completions", 1.0, NO_COMPLETIONS),
    },
    counts={
        "length.completions": ("length.completions",),
    },
    extremes={
        "length.min": ("minima", "length.completions", NO_COMPLETIONS),
        "length.max": ("maxima", "length.completions", NO_COMPLETIONS),
    },
    histograms={"length.mean": "length.tokens"},
)
