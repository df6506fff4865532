"""The load generator as the session sees it: started with a load, read as `Served`, ended."""

from __future__ import annotations

import json
import math
import threading
from collections import Counter
from collections.abc import Mapping
from importlib.util import find_spec
from typing import Any, Final

import numpy as np

from ...errors import InputError
from ...own_installation import how_to_add
from ...sensors.service_load import Requests, Served, ServiceLoad
from ..children.python import python_command, python_environment
from ..specification.service import APIS, ClientSpec
from .background_program import BackgroundProgram

_MODULE: Final = f"{__package__}.load_generator"


def require_generator() -> None:
    """Raises InputError where what the load generator needs is not installed."""
    if find_spec("aiohttp") is None:
        raise InputError("the load generator needs aiohttp", "service.client", how_to_add("service"))


class GeneratedLoad:
    """A load generator at work, from its start to `end`. Starting it takes a moment, before the first request."""

    def __init__(self, client: ClientSpec, url: str, load: ServiceLoad) -> None:
        self._lock = threading.Lock()
        self._rest = b""
        self._reports: list[Mapping[str, Any]] = []
        self._broken = ""
        self._tokens = self._pieces = 0.0  # of answers that ended: tokens for each piece of a stream
        job = {
            "url": url.rstrip("/") + (client.endpoint or APIS[client.api]),
            "api": client.api,
            "model": client.model,
            "rate_per_s": None if math.isnan(load.rate_per_s) else load.rate_per_s,
            "concurrency": load.concurrency,
            "ramp_s": load.ramp_s,
            "prompt_tokens": client.prompt_tokens,
            "output_tokens": client.output_tokens,
            "prompts": str(client.prompts) if client.prompts is not None else None,
            "stream": client.stream,
            "extra": dict(client.extra),
            "key_from": client.key_from,
            "seed": client.seed,
            "timeout_s": client.timeout_s,
        }
        self._program = BackgroundProgram(
            python_command(_MODULE, json.dumps(job)), environment=python_environment(), on_output=self._hear
        )

    def take(self) -> Served | None:
        """What became of requests since the last call; None where nothing was reported since."""
        with self._lock:
            reports, self._reports, broken = self._reports, [], self._broken
        ended = self._program.ended
        if ended is not None and not broken:
            last = (ended.errors.strip() or ended.output.strip()).splitlines()
            broken = f"the load generator ended: {last[-1][:300] if last else ended.how}"
        if not reports:
            return Served(0, 0, Requests.none(), problem=broken) if broken else None
        rows = np.array([row for report in reports for row in report["rows"]], dtype=np.float64).reshape(-1, 8)
        stamps = np.array([row[:4] for report in reports for row in report["rows"]], dtype=np.int64).reshape(-1, 4)
        made = np.where(rows[:, 5] < 0, np.nan, rows[:, 5])
        streamed = np.isfinite(made) & (rows[:, 6] > 0)
        self._tokens += float(made[streamed].sum())
        self._pieces += float(rows[streamed, 6].sum())
        pieces = [report["chunks"] for report in reports]
        streamed_all = all(each is not None for each in pieces)
        known = self._tokens > 0 and self._pieces > 0  # once the first answer has ended
        for_each = self._tokens / self._pieces if known else 1.0
        faults: Counter[str] = Counter()
        for report in reports:
            faults.update(report["faults"])
        due, sent, first, last_token = stamps.T
        return Served(
            start_ns=reports[0]["from"],
            end_ns=reports[-1]["to"],
            requests=Requests(due, sent, first, last_token, rows[:, 4], made, rows[:, 7] > 0),
            idle_s=sum(report["idle"] for report in reports) / 1e9,
            output_tokens=sum(pieces) * for_each if streamed_all else math.nan,
            tokens_per_piece=for_each,
            problem=broken,
            faults=faults,
        )

    def end(self) -> None:
        """End it; requests under way are dropped. Safe to call twice."""
        self._program.end()

    # --- on the program's threads -------------------------------------------------------------------------------------

    def _hear(self, stream: int, chunk: bytes) -> None:
        if stream != 1:
            return
        *lines, self._rest = (self._rest + chunk).split(b"\n")
        with self._lock:
            for line in lines:
                try:
                    self._reports.append(json.loads(line))
                except ValueError:
                    self._broken = "the load generator's report makes no sense"
