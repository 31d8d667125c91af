"""One process of the service, with a clock of its own: ``python -m tests.chaos.service ROLE PORT SKEW_S``."""

from __future__ import annotations

import sys
from datetime import datetime, timedelta, timezone

from rlvitals_dashboard import serve
from rlvitals_monitor.api.deps import utc_now


def main(role: str, port: str, skew_s: str) -> int:
    skew, create = timedelta(seconds=float(skew_s)), serve.create_service

    def create_skewed(*given: object, **named: object) -> object:
        app = create(*given, **named)  # type: ignore[arg-type]
        app.dependency_overrides[utc_now] = lambda: datetime.now(timezone.utc) + skew
        return app

    serve.create_service = create_skewed  # type: ignore[assignment]
    return serve.main(["--role", role, "--port", port])


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
