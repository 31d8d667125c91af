"""What the client tells people: each thing once a process, through the logger ``rlvitals``."""

from __future__ import annotations

LOGGER = "rlvitals"
DISTINCT_MAX = 256

_told: set[str] = set()


def once(key: str, message: str, error: BaseException | None = None) -> bool:
    """Logs a warning the first time that ``key`` is seen. True if it was logged."""
    if key in _told or len(_told) >= DISTINCT_MAX:
        return False
    _told.add(key)
    import logging  # 5 ms that a silent process does not need

    logging.getLogger(LOGGER).warning("rlvitals: %s", message, exc_info=error)
    return True


def again(key: str) -> None:
    """Lets ``key`` be told again: its cause had gone away."""
    _told.discard(key)


def forget() -> None:
    """Forgets all that was told."""
    _told.clear()
