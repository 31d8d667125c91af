"""A process that takes reports and answers receipts at once, so that the sender under test has something to do."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        wire = json.loads(gzip.decompress(self.rfile.read(int(self.headers["Content-Length"]))))
        records = [row[0] for row in wire["rows"]]
        records += [record["seq"] for key in ("texts", "histograms", "events", "outcomes") for record in wire[key]]
        body = json.dumps({"epoch": "sink", "stored_through": max(records, default=0)}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        return


@contextmanager
def sinking() -> Iterator[str]:
    """The address of a sink in a process of its own."""
    process = subprocess.Popen([sys.executable, "-m", "benchmarks.sink"], stdout=subprocess.PIPE, text=True)
    try:
        if process.stdout is None:
            raise RuntimeError("the sink has no output")
        yield process.stdout.readline().strip()
    finally:
        process.kill()
        process.wait()
        if process.stdout is not None:
            process.stdout.close()


if __name__ == "__main__":
    server = HTTPServer(("127.0.0.1", 0), _Handler)
    print(f"http://127.0.0.1:{server.server_address[1]}", flush=True)
    server.serve_forever()
