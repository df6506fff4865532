"""`wattridge pool` and `worker`, and the boards of a pool for `tune`: Dask carries the work, TLS guards it."""

from __future__ import annotations

import os
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from ..base.errors import InputError
from ..base.files import is_there
from .arguments import add_board
from .terminal import print_json, say, show, stop_on_interrupt

if TYPE_CHECKING:
    from ..engine.runner.pool.pool import Certificates
    from ..engine.runner.pool.pooled_gpu import PooledGpu
    from ..engine.session.pool.opening import OpenedPool

_LISTEN = "127.0.0.1:8786"


# --- pool -------------------------------------------------------------------------------------------------------------


def pool_arguments(parser: ArgumentParser) -> None:
    """Declare the options of `wattridge pool`."""
    parser.add_argument(
        "action",
        choices=("certificates", "scheduler", "boards"),
        help="make the certificates of a new pool; run its scheduler; list its boards",
    )
    parser.add_argument("scheduler", nargs="?", metavar="SCHEDULER", help="tls://HOST:PORT, of which boards are listed")
    parser.add_argument(
        "--listen", metavar="HOST:PORT", default=_LISTEN, help=f"where the scheduler listens (default {_LISTEN})"
    )
    add_certificates(parser)


def add_certificates(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--certificates", metavar="FOLDER", help="the pool's certificates (default: `pool` in the data folder)"
    )


def pool(arguments: Namespace) -> int:
    """Make a pool's certificates, run its scheduler, or list its boards."""
    if arguments.action != "boards" and arguments.scheduler is not None:
        raise InputError(f"'{arguments.scheduler}' has no meaning here", f"pool {arguments.action}", "leave it out")
    if arguments.action == "certificates":
        return _make_certificates(arguments)
    from ..engine.session.pool.opening import require_dask

    require_dask()
    return _run_scheduler(arguments) if arguments.action == "scheduler" else _list_boards(arguments)


def _make_certificates(arguments: Namespace) -> int:
    from ..engine.session.pool.opening import make_certificates

    made = make_certificates(_folder(arguments))
    if arguments.json:
        print_json({"folder": str(made.folder), "files": [str(path) for path in made.files]})
        return 0
    show(*(str(path) for path in made.files))
    say("Copy these three files to every machine of the pool, and to nobody else: who has the key can run programs")
    say("as the accounts that run its workers.")
    return 0


def _run_scheduler(arguments: Namespace) -> int:
    import asyncio

    from ..engine.runner.pool.dask_pool import start_scheduler
    from ..engine.session.pool.opening import parse_pool_address

    address, certificates = parse_pool_address(arguments.listen), certificates_of(arguments)

    async def run() -> None:
        scheduler = await start_scheduler(address, certificates)
        if arguments.json:
            print_json({"scheduler": scheduler.address})
        else:
            show(scheduler.address)
            say(f"on each machine with boards: wattridge worker {scheduler.address}")
        try:
            with stop_on_interrupt() as stop:
                while not stop.is_set():
                    await asyncio.sleep(0.2)
        finally:
            await scheduler.close()

    asyncio.run(run())
    return 0


def _list_boards(arguments: Namespace) -> int:
    from ..engine.session.pool.opening import open_scheduler_pool

    if arguments.scheduler is None:
        raise InputError("no scheduler", "pool boards", "name it: wattridge pool boards tls://HOST:PORT")
    with closing(open_scheduler_pool(arguments.scheduler, _folder(arguments))) as opened:
        boards = sorted(opened.pool.boards(), key=lambda each: each.label)
    if arguments.json:
        print_json([{"key": b.key, "name": b.info.name, "source": b.info.source, "host": b.host} for b in boards])
    else:
        show(*([board.label for board in boards] or ["no boards yet"]))
    return 0


# --- worker -----------------------------------------------------------------------------------------------------------


def worker_arguments(parser: ArgumentParser) -> None:
    """Declare the options of `wattridge worker`."""
    parser.add_argument("scheduler", metavar="SCHEDULER", help="tls://HOST:PORT of `wattridge pool scheduler`")
    add_board(parser)
    add_certificates(parser)
    parser.add_argument(
        "--allow-control", action="store_true", help="sessions may set these boards' clocks and caps, which return"
    )


def worker(arguments: Namespace) -> int:
    """Offer the boards of this machine to a pool until Ctrl+C; one process each, started again where it dies."""
    from ..engine.session.pool.opening import require_dask

    require_dask()
    from ..engine.children.supervised import Supervisor
    from ..engine.session.pool.opening import parse_pool_address, worker_children

    address, certificates = parse_pool_address(arguments.scheduler), certificates_of(arguments)
    children = worker_children(
        selectors_of(arguments.gpu) or ([arguments.gpu] if arguments.gpu else boards_here()),
        address,
        certificates,
        seed=arguments.sim_seed,
        speed=arguments.speed,
        allow_control=arguments.allow_control,
    )
    with stop_on_interrupt() as stop:
        supervisor = Supervisor(children, say)
        try:
            announced: set[str] = set()
            while not stop.wait(0.2):
                for child in children:
                    if child.ready is not None and child.name not in announced:
                        announced.add(child.name)
                        say(f"{child.ready['board']} is offered to {address}")
                if all(child.failed and child.process is None for child in children):
                    return 1  # each said why, and none is started again
        finally:
            supervisor.close()
    return 0


def boards_here() -> list[str]:
    """The selectors of this machine's boards that are visible to this job. Raises InputError if there are none."""
    from ..sensors.select import amd_boards, real_boards

    results = [
        *visible([uuid for _, uuid, _ in real_boards()], "CUDA_VISIBLE_DEVICES"),
        *visible([uuid for _, uuid, _ in amd_boards()], "ROCR_VISIBLE_DEVICES"),
    ]
    if not results:
        raise InputError("there is no board here", "worker", "name simulated ones: --gpu simulated:a100,simulated:a100")
    return results


def visible(uuids: Sequence[str], variable: str) -> list[str]:
    """Those that a scheduler of jobs gave to this one, which the drivers' own libraries list with all others.

    As CUDA reads it: numbers, or beginnings of UUIDs, up to the first that is none; all where it is not set.
    """
    given = os.environ.get(variable)
    if given is None:
        return list(uuids)
    found: list[str] = []
    for name in given.split(","):
        name = name.strip()
        if name.isdecimal():
            alike = list(uuids[int(name) : int(name) + 1])
        else:
            alike = [uuid for uuid in uuids if name and uuid.startswith(name)]
        if len(alike) != 1:
            break
        found += alike
    return list(dict.fromkeys(found))


# --- the boards of a pool, for `tune` ---------------------------------------------------------------------------------


def add_pool(parser: ArgumentParser) -> None:
    group = parser.add_argument_group("several boards")
    group.add_argument(
        "--pool", metavar="SCHEDULER", help="measure on the boards of this pool; --gpu 0,1 is one of this machine's own"
    )
    group.add_argument("--model", metavar="NAME", help="on those of this model alone, where the pool has several")
    add_certificates(parser)


def is_pooled(arguments: Namespace) -> bool:
    """Whether several boards are asked for. Raises InputError if they are named in two ways."""
    several = selectors_of(arguments.gpu) is not None
    if arguments.pool is not None and arguments.gpu is not None:
        raise InputError("both --pool and --gpu", "usage", "leave --gpu out: the pool has its boards")
    return several or arguments.pool is not None


def selectors_of(text: str | None) -> list[str] | None:
    """The boards of a comma-separated list; None if it names one. Raises InputError for one named twice."""
    if text is None or "," not in text or is_there(Path(text)):
        return None
    from ..engine.session.pool.opening import listed_boards

    return listed_boards(text)


@contextmanager
def pooled_gpus(arguments: Namespace, speed: float) -> Iterator[list[PooledGpu]]:
    """The boards that are asked for, those of each model as one: of `--pool`, or of a pool of this machine's own."""
    from ..engine.runner.pool.pooled_gpu import PooledGpu

    with closing(_opened(arguments, speed)) as opened:
        yield [PooledGpu(pool, boards) for pool, boards in opened.by_model(arguments.model)]


@contextmanager
def pooled_gpu(arguments: Namespace, speed: float) -> Iterator[PooledGpu]:
    """The boards of one model that are asked for, as one. Raises InputError if there are several models."""
    from ..engine.runner.pool.pooled_gpu import PooledGpu
    from ..engine.session.pool.opening import chosen_model

    with closing(_opened(arguments, speed)) as opened:
        yield PooledGpu(opened.pool, chosen_model(opened.pool, arguments.model))


def _opened(arguments: Namespace, speed: float) -> OpenedPool:
    from ..engine.session.pool.opening import open_local_pool, open_scheduler_pool

    selectors = selectors_of(arguments.gpu)
    if selectors is not None:
        allow, seed = arguments.allow_control, arguments.sim_seed
        return open_local_pool(selectors, seed=seed, speed=speed, allow_control=allow, on_line=say)
    return open_scheduler_pool(arguments.pool, _folder(arguments))


def certificates_of(arguments: Namespace) -> Certificates:
    """The certificates that the options name. Raises InputError."""
    from ..engine.session.pool.opening import find_certificates

    return find_certificates(_folder(arguments))


def _folder(arguments: Namespace) -> Path | None:
    return None if arguments.certificates is None else Path(arguments.certificates)
