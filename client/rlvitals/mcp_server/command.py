"""``rlvitals mcp``: a coding agent starts it and talks to it over its standard input and output."""

from __future__ import annotations

import argparse

import httpx2

from rlvitals import settings
from rlvitals.mcp_server.server import make_server
from rlvitals.query.client import TIMEOUT_S


def main(argv: list[str]) -> int:
    """An MCP server for coding agents: they read runs, alerts and completions; with --allow-control they may also
    ask for commands, for which the token needs the scope operate. They never approve one."""
    parser = argparse.ArgumentParser(prog="rlvitals mcp", description=main.__doc__)
    parser.add_argument("--url", help="the service (default: RLVITALS_URL, or the one on this machine)")
    parser.add_argument("--allow-control", action="store_true", help="also the tool request_command")
    told = parser.parse_args(argv)
    chosen = settings.load(url=told.url)
    headers = {"Authorization": f"Bearer {chosen.token}"} if chosen.token else {}
    with httpx2.Client(base_url=chosen.url, headers=headers, timeout=TIMEOUT_S) as http:
        make_server(http, allow_control=told.allow_control).run()
    return 0
