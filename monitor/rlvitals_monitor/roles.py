"""What one process of the service does: all of it, or the part that its role names."""

from __future__ import annotations

from enum import Enum


class Role(str, Enum):
    """Several processes with roles of their own share one PostgreSQL; any number of each may run."""

    ALL = "all"
    COLLECTOR = "collector"
    WORKER = "worker"
    DASHBOARD = "dashboard"

    @property
    def collects(self) -> bool:
        """Takes reports in."""
        return self in (Role.ALL, Role.COLLECTOR)

    @property
    def judges(self) -> bool:
        """Judges steps, sends what alerts say, steers and sweeps."""
        return self in (Role.ALL, Role.WORKER)

    @property
    def shows(self) -> bool:
        """Answers people and programs: the pages, and all of the API that takes no reports in."""
        return self in (Role.ALL, Role.DASHBOARD)
