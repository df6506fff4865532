"""A pool of four simulated boards, with real processes: what is killed costs no row, and TLS guards what listens."""

from __future__ import annotations

import os
import signal
import socket
import ssl
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import TypeVar

import pytest

pytest.importorskip("distributed", reason="needs the extra [pool]")
pytest.importorskip("cryptography", reason="needs the extra [pool]")

import psutil
from fixtures.tcp_network import Network

from app import cli
from app.base.errors import WattridgeError
from app.base.paths import resources
from app.commands.pool import visible
from app.engine.children.python import python_command, python_environment
from app.engine.results.measurement import Depth, Measurement, State
from app.engine.results.state import SessionState
from app.engine.runner.pool.dask_pool import DaskPool
from app.engine.runner.pool.messages import Request, SessionWork, bundle_of, parse_answer, request_line
from app.engine.runner.pool.pool import Came, Certificates, Failure, Left, Said, Unanswered, boards_of_origin
from app.engine.runner.pool.pooled_gpu import PooledGpu
from app.engine.session.events import Event, MeasurementsAdded, PoolReported
from app.engine.session.load import load_specification
from app.engine.session.planning import plan_specification, space_of
from app.engine.session.pool.opening import make_certificates
from app.engine.session.run import run_session
from app.engine.specification.plan import SearchOptions
from app.engine.store.database import Store
from app.sensors.clock import VirtualClock
from app.sensors.simulated.gpu import SimulatedGpu
from app.sensors.simulated.twin import load_twin

T = TypeVar("T")
BOARDS = 4
LONG_S = 120.0


class Cluster:
    """`wattridge pool scheduler` and, with four boards, `wattridge worker`."""

    def __init__(self, folder: Path) -> None:
        self.certificates = make_certificates(folder / "certificates")
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        self.address = f"tls://127.0.0.1:{port}"
        self.scheduler = self._start_scheduler()
        self.parent = self._start_parent()
        self.pool = DaskPool(self.address, self.certificates, connect_s=LONG_S)
        wait_for(lambda: len(self.pool.boards()) == BOARDS)

    def _start_scheduler(self) -> subprocess.Popen[bytes]:
        return self.start("pool", "scheduler", "--listen", self.address)

    def _start_parent(self) -> subprocess.Popen[bytes]:
        return self.start("worker", self.address, "--gpu", ",".join(["simulated:a100"] * BOARDS), "--speed", "inf")

    def start(self, *words: str) -> subprocess.Popen[bytes]:
        command = python_command("app", *words, "--certificates", str(self.certificates.folder))
        quiet = subprocess.DEVNULL
        return subprocess.Popen(command, stdout=quiet, stderr=quiet, env=python_environment())

    def workers(self) -> list[int]:
        return [each.pid for each in psutil.Process(self.parent.pid).children()]

    def kill_worker(self) -> None:
        os.kill(self.workers()[0], signal.SIGKILL)

    def kill_scheduler(self) -> None:
        self.scheduler.kill()
        self.scheduler.wait()
        self.scheduler = self._start_scheduler()

    def kill_parent(self) -> None:
        """The parent of the workers, which end with it; then start it again."""
        workers = [psutil.Process(pid) for pid in self.workers()]
        self.parent.kill()
        self.parent.wait()
        psutil.wait_procs(workers, LONG_S)
        assert not any(each.is_running() for each in workers), "no worker outlives its parent"
        self.parent = self._start_parent()

    def close(self) -> None:
        self.pool.close()
        for process in (self.parent, self.scheduler):
            process.terminate()
            process.wait()


def wait_for(condition: Callable[[], bool]) -> None:
    until = time.monotonic() + LONG_S
    while not condition():
        assert time.monotonic() < until, "it took too long"
        time.sleep(0.02)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    folder = tmp_path_factory.mktemp("pool")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("WATTRIDGE_DATA", str(folder / "data"))
        made = Cluster(folder)
    yield made
    made.close()


def test_kills_of_a_worker_the_scheduler_and_their_parent_cost_no_row_and_double_none(cluster: Cluster) -> None:
    kills = {20: cluster.kill_worker, 60: cluster.kill_scheduler, 110: cluster.kill_parent}
    measured, remarks = session_with(cluster.pool, 160, kills)
    assert len({each.board for each in measured}) == BOARDS
    assert all("died" not in each.error for each in measured if each.state is State.RUNTIME)
    assert any("left the pool" in line for line in remarks)
    wait_for(lambda: len(cluster.pool.boards()) == BOARDS)


def session_with(
    pool: DaskPool, rows: int, blows: Mapping[int, Callable[[], None]]
) -> tuple[list[Measurement], list[str]]:
    """What a session measured in which each blow fell after so many rows, and what was said of the pool meanwhile.

    It ended as it should, with nothing lost and nothing twice.
    """
    left, remarks = dict(blows), list[str]()

    def on_event(event: Event) -> None:
        if isinstance(event, MeasurementsAdded):
            for at in [at for at in left if at <= event.length]:
                left.pop(at)()
        elif isinstance(event, PoolReported) and event.remark:
            remarks.append(event.remark)

    gpu = PooledGpu(pool, pool.boards())
    specification = load_specification(resources() / "examples" / "gemm.toml")
    plan = plan_specification(specification, gpu, SearchOptions(max_evaluations=rows, strategy="random_sample"))
    with Store() as store:
        result = run_session(plan, store, on_event, threading.Event())
        table = store.load(result.session).table
    assert (result.state, result.reason) == (SessionState.DONE, "the budget is used up")
    assert not left, "every blow fell"
    assert len(set(table.rows().tolist())) == len(table) == rows
    return [table.measurement(at) for at in range(rows)], remarks


def test_a_network_that_stalls_and_is_cut_costs_no_row_and_doubles_none(cluster: Cluster) -> None:
    wait_for(lambda: len(cluster.pool.boards()) == BOARDS)
    network = Network(("127.0.0.1", int(cluster.address.rpartition(":")[2])))
    pool = DaskPool(f"tls://127.0.0.1:{network.port}", cluster.certificates, connect_s=LONG_S)
    try:
        wait_for(lambda: len(pool.boards()) == BOARDS)
        _, remarks = session_with(pool, 80, {15: lambda: network.stall(1.0), 45: network.cut})
    finally:
        pool.close()
        network.close()
    assert "the scheduler of the pool is lost; it is tried again" in remarks
    assert "the scheduler of the pool is there again" in remarks


# --- ends in order ----------------------------------------------------------------------------------------------------


@contextmanager
def offered(cluster: Cluster, selector: str) -> Iterator[subprocess.Popen[bytes]]:
    """One more `wattridge worker`, with a board that runs in real time."""
    worker = cluster.start("worker", cluster.address, "--gpu", selector)
    try:
        yield worker
    finally:
        worker.terminate()
        worker.wait()


def heard(pool: DaskPool, kind: type[T], which: Callable[[T], object] = lambda _: True) -> T:
    """The next event of that kind."""
    until = time.monotonic() + LONG_S
    while time.monotonic() < until:
        event = pool.heard(0.1)
        if isinstance(event, kind) and which(event):
            return event
    raise AssertionError(f"no {kind.__name__} was heard of")


def test_what_a_scheduler_of_jobs_ends_counts_as_no_death(cluster: Cluster) -> None:
    """It sends SIGTERM to every process of a job, not to the first alone."""
    specification = load_specification(resources() / "examples" / "gemm.toml")
    space = space_of(specification, SimulatedGpu(load_twin("v100"), clock=VirtualClock()))
    pool = DaskPool(cluster.address, cluster.certificates, connect_s=LONG_S)
    with closing(pool), offered(cluster, "simulated:v100") as worker:
        board = heard(pool, Came, lambda event: "V100" in event.board.label).board
        work = SessionWork("cd" * 16, bundle_of(specification), space)
        pool.send(board.key, 1, request_line(Request("open", work.session, 1, work=work)))
        heard(pool, Said, lambda event: event.number == 1 and parse_answer(event.line, "there").answer)
        pool.send(board.key, 2, request_line(Request("measure", work.session, 2, tuple(range(24)), Depth.ENERGY)))
        heard(pool, Said, lambda event: event.number == 2)
        job = psutil.Process(worker.pid)
        for process in [*job.children(recursive=True), job]:
            with suppress(psutil.NoSuchProcess):
                process.terminate()
        assert worker.wait(LONG_S) == 0
        ended = heard(pool, Unanswered)
        assert (ended.number, ended.how) == (2, Failure.BROKEN), "its rows go to another board, and blame no kernel"


def test_a_board_that_two_workers_offer_stays_when_one_of_them_goes(cluster: Cluster) -> None:
    pool = DaskPool(cluster.address, cluster.certificates, connect_s=LONG_S)

    def came() -> str:
        return heard(pool, Came, lambda event: "V100" in event.board.label).board.key

    with closing(pool), offered(cluster, "simulated:v100"):
        first = came()
        with offered(cluster, "simulated:v100"):
            assert came() == first
        heard(pool, Left, lambda event: event.board == first)
        assert came() == first, "the other one offers it still"


# --- what listens -----------------------------------------------------------------------------------------------------


def listening(pids: list[int]) -> list[tuple[str, int]]:
    found = []
    for pid in pids:
        connections = psutil.Process(pid).net_connections(kind="all")
        found += [(each.laddr.ip, each.laddr.port) for each in connections if each.status == psutil.CONN_LISTEN]
        assert not [each for each in connections if each.type == socket.SOCK_DGRAM]
    return found


@contextmanager
def connected(address: tuple[str, int], certificates: Certificates | None) -> Iterator[ssl.SSLSocket]:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    if certificates is not None:
        context.load_cert_chain(certificates.certificate, certificates.key)
    with socket.create_connection(address, timeout=LONG_S) as raw, context.wrap_socket(raw) as secured:
        yield secured


def heard_from(address: tuple[str, int], certificates: Certificates | None) -> bytes:
    """The first bytes that the other side sends; nothing where it turns away."""
    with suppress(ssl.SSLError, ConnectionError), connected(address, certificates) as secured:
        return secured.recv(64)
    return b""


def test_whatever_listens_hears_only_those_with_a_certificate_of_the_pool(cluster: Cluster, tmp_path: Path) -> None:
    wait_for(lambda: len(cluster.pool.boards()) == BOARDS)
    addresses = listening([cluster.scheduler.pid, cluster.parent.pid, *cluster.workers()])
    assert len(addresses) == 1 + BOARDS, "the scheduler and each worker, once; no pages, and nothing of their parent"
    assert {ip for ip, _ in addresses} == {"127.0.0.1"}
    foreign = make_certificates(tmp_path / "foreign")
    for address in addresses:
        assert heard_from(address, cluster.certificates), "who has the pool's certificate is greeted"
        assert heard_from(address, None) == b""
        assert heard_from(address, foreign) == b""
        with socket.create_connection(address, timeout=LONG_S) as plain, suppress(ConnectionError):
            plain.sendall(b"GET / HTTP/1.0\r\n\r\n" + bytes(64))
            assert b"HTTP" not in plain.recv(64)


def test_with_the_certificates_of_another_pool_nobody_takes_part(cluster: Cluster, tmp_path: Path) -> None:
    foreign = make_certificates(tmp_path / "foreign")
    with pytest.raises(WattridgeError, match="cannot be reached") as error:
        DaskPool(cluster.address, foreign, connect_s=1.0)
    assert "certificates of this pool" in error.value.remedy


def test_a_worker_with_the_certificates_of_another_pool_is_not_taken_and_says_so(
    cluster: Cluster, tmp_path: Path
) -> None:
    foreign = make_certificates(tmp_path / "foreign")
    words = ["worker", cluster.address, "--gpu", "simulated:v100", "--certificates", str(foreign.folder)]
    command, environment = python_command("app", *words), python_environment()
    worker = subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, env=environment, text=True)
    assert worker.stderr is not None
    with worker.stderr:
        said = worker.stderr.readline()
        assert said == f"no scheduler of this pool answers at {cluster.address} yet; it is tried again\n"
        assert not any("V100" in each.label for each in cluster.pool.boards())
        worker.terminate()
        worker.wait()


def test_a_scheduler_that_is_not_there_is_one_line(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    made = make_certificates(tmp_path / "pool")
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
        with pytest.raises(WattridgeError, match="cannot be reached"):
            DaskPool(f"tls://127.0.0.1:{port}", made, connect_s=0.5)
    assert capfd.readouterr().err == ""


def test_a_scheduler_that_cannot_listen_is_one_line(tmp_path: Path) -> None:
    made = make_certificates(tmp_path / "pool")
    words = ["pool", "scheduler", "--certificates", str(made.folder), "--listen", "203.0.113.9:8786"]
    command = python_command("app", *words)
    done = subprocess.run(
        command, env=python_environment(), capture_output=True, text=True, check=False, timeout=LONG_S
    )
    assert done.returncode == 1
    assert done.stderr.startswith("wattridge: tls://203.0.113.9:8786: the scheduler cannot listen: ")
    assert done.stderr.count("\n") == 1


def test_a_worker_without_a_board_says_why(cluster: Cluster) -> None:
    words = [
        "worker",
        cluster.address,
        "--gpu",
        "simulated:nothing",
        "--certificates",
        str(cluster.certificates.folder),
    ]
    command = python_command("app", *words)
    done = subprocess.run(
        command, env=python_environment(), capture_output=True, text=True, check=False, timeout=LONG_S
    )
    assert done.returncode == 1
    assert "simulated:nothing" in done.stderr
    assert "no simulated GPU is called" in done.stderr


# --- the commands -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("words", [["pool", "scheduler", "--listen", "0.0.0.0:8786"], ["worker", "node:8786"]])
def test_without_certificates_nothing_listens_and_nothing_is_reached(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(words) == 2
    said = capsys.readouterr().err
    assert "pool-key.pem of a pool's certificates is missing" in said
    assert said.count("\n") == 1


def test_the_boards_of_a_pool_are_listed(cluster: Cluster, capsys: pytest.CaptureFixture[str]) -> None:
    wait_for(lambda: len(cluster.pool.boards()) == BOARDS)
    folder = str(cluster.certificates.folder)
    assert cli.main(["pool", "boards", cluster.address, "--certificates", folder]) == 0
    assert capsys.readouterr().out.count("NVIDIA A100-PCIE-40GB (simulated) on ") == BOARDS


def test_boards_are_named_in_one_way(capsys: pytest.CaptureFixture[str]) -> None:
    example = str(resources() / "examples" / "gemm.toml")
    assert cli.main(["tune", example, "--gpu", "0,1,0"]) == 2
    assert "is no list of boards" in capsys.readouterr().err
    assert cli.main(["tune", example, "--gpu", "0", "--pool", "node:8786"]) == 2
    assert "both --pool and --gpu" in capsys.readouterr().err


def test_the_boards_of_one_machine_tune_together(capsys: pytest.CaptureFixture[str]) -> None:
    example = str(resources() / "examples" / "gemm.toml")
    boards = "simulated:a100,simulated:a100"
    assert cli.main(["tune", example, "--gpu", boards, "--strategy", "random_sample", "--max-evaluations", "12"]) == 0
    with Store() as store:
        loaded = store.load(1)
    assert len(loaded.table) == 12
    assert len(boards_of_origin(loaded.record.origin)) == 2, "both took part"
    assert loaded.table.decided_on in ("", *loaded.table.boards)


def test_connecting_ends_at_once_when_nobody_waits_for_it(tmp_path: Path) -> None:
    stop = threading.Event()
    threading.Timer(0.2, stop.set).start()
    with pytest.raises(WattridgeError, match="nobody waits"):
        DaskPool("tls://127.0.0.1:1", make_certificates(tmp_path / "c"), connect_s=10 * LONG_S, stop=stop)


UUIDS = ["GPU-1a", "GPU-1b", "GPU-2c"]


@pytest.mark.parametrize(
    ("given", "found"),
    [
        (None, UUIDS),
        ("", []),
        ("2,0", ["GPU-2c", "GPU-1a"]),
        ("GPU-2", ["GPU-2c"]),
        ("GPU-1", []),  # of two
        ("1, GPU-1a,1", ["GPU-1b", "GPU-1a"]),
        ("0,7,1", ["GPU-1a"]),  # as CUDA has it: what follows one that is not there is not visible
        ("-1,0", []),
        ("MIG-3f", []),
    ],
)
def test_a_worker_offers_the_boards_that_its_job_was_given(
    given: str | None, found: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    if given is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", given)
    assert visible(UUIDS, "CUDA_VISIBLE_DEVICES") == found
