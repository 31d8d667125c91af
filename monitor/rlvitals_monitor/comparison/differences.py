"""Which settings of several runs differ. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from rlvitals.contract import codec
from rlvitals.contract.comparison import SettingsView, SettingView


def compare_settings(configs: Mapping[str, Mapping[str, Any]], names: Mapping[str, str]) -> SettingsView:
    """``configs`` by run, in the order in which the runs are shown; ``names`` are the runs' own. Settings that
    differ come first, each part in the order in which they were told."""
    flat = {key: dict(_flat(config)) for key, config in configs.items()}
    told = list(dict.fromkeys(name for settings in flat.values() for name in settings))
    rows = [_row(name, flat) for name in told]
    unlike = [row for row in rows if not row.alike]
    return SettingsView(
        runs=dict(names),
        settings=(*unlike, *(row for row in rows if row.alike)),
        different=len(unlike),
        untold=tuple(key for key, settings in flat.items() if not settings),
    )


def _row(name: str, flat: Mapping[str, Mapping[str, Any]]) -> SettingView:
    values = {key: settings[name] for key, settings in flat.items() if name in settings}
    written = {_written(value) for value in values.values()}
    silent = [key for key, settings in flat.items() if settings and name not in settings]
    return SettingView(name=name, values=values, alike=len(written) == 1 and not silent)


def _written(value: Any) -> bytes:
    """1 and 1.0 are one setting, 1 and true are two."""
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) < 2**53:
        value = float(value)
    if isinstance(value, float) and value == 0:
        value = 0.0
    return codec.dumps([value])


def _flat(config: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, Any]]:
    """An empty group is none, so that a run without any differs from one that told of it by nothing."""
    for name, value in config.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{before}{name}.")
        else:
            yield f"{before}{name}", value
