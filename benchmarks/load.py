"""Many simulated trainers, each with a run of its own, over real HTTP; to this machine only."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from rlvitals.contract.report import ReportBatch, RunInfo, StepReport
from rlvitals.contract.wire import to_wire
from rlvitals.transport import LOOPBACK, REPORTS_PATH, pack

TRAINERS_MAX, CONNECTIONS_MAX = 10_000, 512
METRICS = 20


@dataclass(kw_only=True)
class Loaded:
    """What became of the batches, and how long each took from its first byte to its receipt, in seconds."""

    steps: int = 0
    refused: int = 0
    took_s: list[float] = field(default_factory=list)
    wall_s: float = 0.0

    def percentile_s(self, share: float) -> float:
        ordered = sorted(self.took_s)
        return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else math.nan


def batches(trainers: int, rounds: int, steps: int, *, first: int = 0) -> Iterator[list[bytes]]:
    """Bodies of one round after the other, one of each trainer; packed before any clock runs."""
    if not 0 < trainers <= TRAINERS_MAX:
        raise ValueError(f"expected 1 to {TRAINERS_MAX} trainers, got {trainers}")
    names = [f"family_{number % 5}.metric_{number}" for number in range(METRICS)]
    for turn in range(first, first + rounds):
        at = range(turn * steps, (turn + 1) * steps)
        made = tuple(
            StepReport(seq=s + 1, step=s, time_s=time.time(), values=dict.fromkeys(names, 1 / (s + 1))) for s in at
        )
        yield [
            pack(to_wire(ReportBatch(run=RunInfo(id=f"load-{number}"), attempt="a", steps=made)))
            for number in range(trainers)
        ]


async def load(
    urls: Sequence[str], token: str, bodies: Sequence[bytes], *, steps: int, connections: int
) -> Loaded:
    """Sends all bodies by ``connections`` at once, those spread over ``urls``; raises ValueError off loopback."""
    places = [urlsplit(url) for url in urls]
    if any(place.hostname not in LOOPBACK for place in places):
        raise ValueError("the load goes to this machine only")
    loaded, waiting = Loaded(), iter(bodies)

    async def trainer(place: int) -> None:
        target = places[place % len(places)]
        reader, writer = await asyncio.open_connection(target.hostname, target.port)
        head = (
            f"POST {REPORTS_PATH} HTTP/1.1\r\nHost: {target.netloc}\r\nAuthorization: Bearer {token}\r\n"
            "Content-Type: application/json\r\nContent-Encoding: gzip\r\nContent-Length: "
        )
        for body in waiting:
            began = time.perf_counter()
            writer.write(f"{head}{len(body)}\r\n\r\n".encode() + body)
            status = int((await reader.readline()).split()[1])
            length = 0
            while (line := await reader.readline()) != b"\r\n":
                name, _, value = line.partition(b":")
                length = int(value) if name.lower() == b"content-length" else length
            await reader.readexactly(length)
            loaded.took_s.append(time.perf_counter() - began)
            if status == 200:
                loaded.steps += steps
            else:
                loaded.refused += 1
        writer.close()

    began = time.perf_counter()
    await asyncio.gather(*(trainer(place) for place in range(min(connections, CONNECTIONS_MAX))))
    loaded.wall_s = time.perf_counter() - began
    return loaded
