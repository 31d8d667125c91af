"""What an agent may ask for where it is allowed to: commands, never the approval of one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

import httpx2
from mcp.server.mcpserver.exceptions import ToolError
from pydantic import Field

from rlvitals.contract import codec
from rlvitals.contract.command import CommandKind
from rlvitals.mcp_server.reading import Run
from rlvitals.query.client import API, segment
from rlvitals.query.errors import error_of


def asking_tool(http: httpx2.Client) -> Callable[..., dict[str, Any]]:
    """The token needs the scope ``operate``: the service looks at that, and at its own bounds, each time."""

    def request_command(
        run: Run,
        kind: CommandKind,
        why: Annotated[str, Field(min_length=8, max_length=1000, description="stands in the audit")],
        argument: float | None = None,
        knob: str = "",
    ) -> dict[str, Any]:
        """Asks the trainer of a run to pause, resume, stop, save a checkpoint, or change a number, at its next
        step, on all ranks. `argument` is the new KL coefficient or the knob's value, a factor on the learning
        rate, or the most seconds of a pause. It changes a real training: ask the person who runs it first."""
        body = {"kind": kind.value, "argument": argument, "why": why, "knob": knob}
        try:
            answer = http.post(f"{API}/runs/{segment(run)}/commands", json=body, follow_redirects=False)
        except httpx2.HTTPError as error:
            raise ToolError(f"the service does not answer: {error}") from error
        if answer.status_code not in (200, 201):
            raise ToolError(str(error_of(answer.status_code, answer.headers, answer.content, str(http.base_url))))
        told: dict[str, Any] = codec.loads(answer.content)
        return told

    return request_command
