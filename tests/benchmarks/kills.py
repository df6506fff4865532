"""Kills and faults at random moments of a session that changes clocks and caps: is the board always as it was before?

    python tests/benchmarks/kills.py [KILLS] [SEED] [FILE] [BOARD]

FILE (- for none) keeps what each kill came to, so that a run that is broken off goes on where it was. BOARD is h200 or,
of AMD, mi210: its sessions measure a program, for which a window would ask, and have no runner process; or b200, whose
sessions change workload power profiles too.

Besides signals: processes that are stopped (SIGSTOP), a driver whose setters hang once or for good, a disk of records
that is full or read-only when the session is killed, and records that are truncated or empty when everything is killed.

Boards are stand-ins for the driver's library (tests/nvml); windows (offscreen), sessions, runner processes and the
helper with rights are the product's own, and so are their ways to end. Needs root, as the helper has it, a C compiler
and the right to mount: records lie on a disk of its own, in a name space of its own. Sets nothing real. The prior state
is not the default: another power limit, and for every other kill a clock lock that was confirmed.
"""

from __future__ import annotations

import json
import os
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

_TESTS = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(_TESTS / "nvml"), str(_TESTS.parent)]

from boards import StandIn  # noqa: E402

from app.engine.control.helper import record  # noqa: E402
from app.engine.control.left_over import left_over  # noqa: E402

SIGNALS = ("SIGKILL", "SIGTERM", "SIGSEGV", "SIGSTOP")
TARGETS = ("window", "session", "runner", "helper, serving", "helper, waiting", "helper, both", "all")
STOPPED = ("window", "session", "helper, serving")  # what is stopped: of the others nobody is left to notice
FAULTS = (
    ("driver", "hangs once"),
    ("driver", "hangs"),
    ("disk", "full"),
    ("disk", "read-only"),
    ("record", "truncated"),
    ("record", "empty"),
)
PLAN = [(target, name) for target in TARGETS for name in SIGNALS if name != "SIGSTOP" or target in STOPPED]
PLAN.extend(FAULTS)
BACK_S = 10.0  # by then everything must be as before
_SETTERS = {
    "h200": ("nvmlDeviceSetGpuLockedClocks", "nvmlDeviceSetPowerManagementLimit", "nvmlDeviceResetGpuLockedClocks"),
    "b200": (
        "nvmlDeviceWorkloadPowerProfileSetRequestedProfiles",
        "nvmlDeviceWorkloadPowerProfileClearRequestedProfiles",
        "nvmlDeviceResetGpuLockedClocks",
    ),
    "mi210": ("amdsmi_set_gpu_clk_range", "amdsmi_set_power_cap", "amdsmi_set_gpu_perf_level"),
}
_CONFIRMED = {  # clock and cap of a prior state, and a profile
    "h200": ("--clock", "1605", "--power-limit", "600"),
    "b200": ("--clock", "1605", "--power-limit", "600", "--workload-power-profile", "compute"),
    "mi210": ("--clock", "1200", "--power-limit", "250"),
}
_LIMIT_MW = {"h200": 650_000, "b200": 950_000, "mi210": 280_000}
_IN_OWN_SPACE = "WATTRIDGE_KILLS_OWN_SPACE"
_SPECIFICATION = """
[kernel]
name = "scale"
source = "scale.cu"
problem_size = ["n"]
grid_divisors = { x = ["block_size_x"] }
arguments = [
    { name = "y", type = "float32", shape = ["n"], output = true },
    { name = "x", type = "float32", shape = ["n"], fill = "random" },
]
[constants]
n = 1000
[parameters]
block_size_x = [64, 128]
[device_settings]
graphics_clock_mhz = [1005, 1200, 1500, 1755, 1980]
power_limit_w = [300, 500]
[objective]
minimise = "energy_j"
[search]
strategy = "random_sample"
"""
_PROFILES = 'workload_power_profile = ["none", "max_q", "llm_inference"]'
_OF_PROFILES = _SPECIFICATION.replace("1755, 1980]", f"1755]\n{_PROFILES}")
_OF_A_PROGRAM = f"""
[command]
run = "{sys.executable} -c 'import time; time.sleep(0.2 + {{n}} / 100)'"
[parameters]
n = [1, 2]
[device_settings]
graphics_clock_mhz = [600, 900, 1200, 1500, 1700]
power_limit_w = [150, 250]
[objective]
minimise = "energy_j"
[search]
strategy = "random_sample"
"""


@dataclass(frozen=True)
class Kill:
    """One kill and what became of the board."""

    target: str
    signal: str
    confirmed: bool  # whether the prior state held a lock that a person had confirmed
    changed: bool  # whether the board differed from its prior state at that moment
    back_s: float | None  # from the kill (of a runner: from the session's own end); None: not without the next start
    after_next_start: bool
    went_on: bool  # the session outlived it
    unlocked: bool = False  # the record was destroyed: named, exit status 1, and unlocked by `restore --defaults`


class Bench:
    """A board of one's own, and sessions on it."""

    def __init__(self, folder: Path, kind: str, *, confirmed: bool) -> None:
        self.kind = kind
        self.stand_in = StandIn(folder, (kind,))
        self.stand_in.boards[0].settle_us = 20_000
        self.confirmed = confirmed
        self._specification = folder / "scale.toml"
        described = {"h200": _SPECIFICATION, "b200": _OF_PROFILES, "mi210": _OF_A_PROGRAM}[kind]
        self._specification.write_text(described)
        (folder / "scale.cu").write_text("// what the compiler that is not there reads are the defines\n")
        self._environment = {**os.environ, **self.stand_in.environment(), "WATTRIDGE_DATA": str(folder / "data")}
        self.prepare()

    def prepare(self) -> None:
        """The prior state, which is not the default."""
        self.stand_in.boards[0].limit = _LIMIT_MW[self.kind]
        if self.confirmed:
            self.run("apply", "--gpu", "0", *_CONFIRMED[self.kind], "--allow-control", "--keep")
        self.prior = self.stand_in.settings()

    @property
    def record(self) -> Path:
        return Path(record.FOLDER, f"{self.stand_in.uuids[0]}.json")

    def close(self) -> None:
        Path(record.LOCK_FOLDER, f"{self.stand_in.uuids[0]}.lock").unlink(missing_ok=True)
        self.stand_in.close()

    def start(self, *words: str) -> subprocess.Popen[bytes]:
        program = [sys.executable, str(_TESTS / "nvml" / "program.py"), *words]
        nothing = subprocess.DEVNULL
        return subprocess.Popen(program, env=self._environment, stdin=nothing, stdout=nothing, stderr=nothing)

    def window(self) -> subprocess.Popen[bytes]:
        program = [sys.executable, str(_TESTS / "nvml" / "window_session.py"), str(self._specification)]
        environment = {**self._environment, "QT_QPA_PLATFORM": "offscreen"}
        nothing = subprocess.DEVNULL
        return subprocess.Popen(program, env=environment, stdin=nothing, stdout=nothing, stderr=nothing)

    def run(self, *words: str) -> int:
        return self.start(*words).wait(120)

    def session(self, evaluations: int) -> subprocess.Popen[bytes]:
        budget = ("--max-evaluations", str(evaluations), "--seed", str(random.getrandbits(20)))
        return self.start("tune", str(self._specification), "--gpu", "0", "--allow-control", *budget)

    def next_start(self) -> None:
        """What a person does next: a session that is allowed to set boards, or `wattridge restore`."""
        if self.confirmed:
            self.run("tune", str(self._specification), "--gpu", "0", "--allow-control", "--max-evaluations", "1")
        else:
            self.run("restore", "--gpu", "0")

    def is_back(self) -> bool:
        return self.stand_in.settings() == self.prior

    def kill(self, target: str, name: str, rng: random.Random) -> Kill:
        """Start a session, kill at a random moment after its first setting, and see what becomes of the board."""
        before = len(self.stand_in.calls())
        session = self.window() if target == "window" else self.session(6 if target == "runner" else 20)
        try:
            _until(lambda: len(self.stand_in.calls()) > before or session.poll() is not None, 60.0)
            time.sleep(rng.uniform(0.0, 2.5))
            assert session.poll() is None, "the session ended before it was killed"
            changed = not self.is_back()
            killed = self._inflict(session, target, name, rng)
            victims = _victims(session.pid, target, rng) if target in TARGETS else []
            for victim in victims:
                with suppress(ProcessLookupError):
                    os.kill(victim, getattr(signal, name))
            went_on = target == "runner" and bool(victims) and session.poll() is None
            if target == "runner":
                session.wait(120)
                went_on = went_on and session.returncode == 0
                killed = time.monotonic()
            back_s = killed if _until(self.is_back, BACK_S) else None
            back_s = None if back_s is None else time.monotonic() - killed
        finally:
            with suppress(ProcessLookupError):
                for step in (signal.SIGCONT, signal.SIGTERM if target == "window" else signal.SIGINT):
                    session.send_signal(step)
            session.wait(120)
        _until(lambda: not _family(session.pid, self.stand_in.uuids[0]), 60.0)
        self.stand_in.no_faults()
        _mend_disk()
        after_next_start = unlocked = False
        if target == "disk" and self.record.exists():
            self.next_start()  # a record that a full disk or a read-only one kept from going
            told = left_over(self.stand_in.uuids[0])
            assert told is None or not told.unfinished
        elif back_s is None and target == "record":
            unlocked = self._is_reported_and_unlocked(name)
            self.prepare()
        elif back_s is None:
            told = left_over(self.stand_in.uuids[0])
            assert told is not None, "nothing tells of what is left over"
            assert told.unfinished
            self.next_start()
            after_next_start = self.is_back()
        self.stand_in._state.calls = 0
        return Kill(target, name, self.confirmed, changed, back_s, after_next_start, went_on, unlocked)

    def _inflict(self, session: subprocess.Popen[bytes], target: str, name: str, rng: random.Random) -> float:
        """Faults other than signals; when they began to bite, monotonic s."""
        if target == "driver" and name == "hangs once":
            fault = rng.choice(_SETTERS[self.kind][:2])
            self.stand_in.fault(fault, delay_s=3600.0, times=1)
            assert _until(lambda: not self.stand_in.is_faulty(fault), 60.0), "the session sets nothing more"
        elif target == "driver":
            for function in _SETTERS[self.kind]:
                self.stand_in.fault(function, delay_s=3600.0)
            session.kill()
        elif target == "disk":
            _spoil_disk(name)
            session.kill()
        elif target == "record":
            for victim in _victims(session.pid, "all", rng)[::-1]:  # those first that would put it back
                with suppress(ProcessLookupError):
                    os.kill(victim, signal.SIGKILL)
        return time.monotonic()

    def _is_reported_and_unlocked(self, how: str) -> bool:
        text = self.record.read_bytes()
        self.record.write_bytes(text[: len(text) // 2] if how == "truncated" else b"")
        reported = self.run("gpus") == 1 and self.run("restore", "--gpu", "0") == 1
        told = left_over(self.stand_in.uuids[0])
        done = self.run("restore", "--gpu", "0", "--defaults") == 0
        now = self.stand_in.settings()
        unlocked = now["lock"] == (0, 0) and now["limit"] == self.stand_in.boards[0].limit_default
        return reported and told is not None and bool(told.unreadable) and done and unlocked


def _spoil_disk(how: str) -> None:
    if how == "read-only":
        subprocess.run(["mount", "-o", "remount,ro", record.FOLDER], check=True)
        return
    with suppress(OSError):  # until no byte is left
        for number in range(1000):
            Path(record.FOLDER, f"filler {number}").write_bytes(b"x" * 4096)


def _mend_disk() -> None:
    subprocess.run(["mount", "-o", "remount,rw", record.FOLDER], check=True)
    for path in Path(record.FOLDER).glob("filler *"):
        path.unlink()


@contextmanager
def bench(kind: str, *, confirmed: bool) -> Iterator[Bench]:
    with tempfile.TemporaryDirectory(prefix="kills-") as folder:
        one = Bench(Path(folder), kind, confirmed=confirmed)
        try:
            yield one
        finally:
            one.close()


def _victims(session: int, target: str, rng: random.Random) -> list[int]:
    children = _children(session)
    runners = [pid for pid in children if "kernels.worker" in _command(pid)]
    waiting = [pid for pid in children if _command(pid).rstrip("\0").rpartition("\0")[0].endswith("control/helper")]
    serving = [pid for each in waiting for pid in _children(each)]
    return {
        "window": [session],
        "session": [session],
        "runner": [rng.choice(runners)] if runners else [],
        "helper, serving": serving,
        "helper, waiting": waiting,
        "helper, both": [*waiting, *serving],
        "all": [session, *runners, *waiting, *serving],
    }[target]


def _family(session: int, uuid: str) -> list[int]:
    """What is left of a session: it, and whatever serves its board."""
    return [pid for pid in _pids() if pid == session or _command(pid).rstrip("\0").endswith(uuid)]


def _children(parent: int) -> list[int]:
    return [pid for pid in _pids() if _stat(pid)[1:2] == [str(parent)] and _stat(pid)[0] != "Z"]


def _pids() -> list[int]:
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def _stat(pid: int) -> list[str]:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return []


def _command(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().decode("utf-8", "replace")
    except OSError:
        return ""


def _until(happened: Any, patience_s: float) -> bool:
    until = time.monotonic() + patience_s
    while not happened():
        if time.monotonic() > until:
            return False
        time.sleep(0.005)
    return True


def _table(kills: list[Kill]) -> str:
    lines = [
        f"{'what':<16} {'how':<10} {'times':>5} {'back':>5} {'median s':>9} {'worst s':>8} "
        f"{'next start':>10} {'unlocked':>8} {'lost':>5} {'went on':>7}"
    ]
    for target, name in PLAN:
        some = [kill for kill in kills if (kill.target, kill.signal) == (target, name)]
        if not some:
            continue
        times = [kill.back_s for kill in some if kill.back_s is not None]
        started, unlocked = sum(kill.after_next_start for kill in some), sum(kill.unlocked for kill in some)
        middle, worst = (f"{statistics.median(times):.2f}", f"{max(times):.2f}") if times else ("–", "–")
        lost = sum(_is_lost(kill) for kill in some)
        went_on = sum(kill.went_on for kill in some)
        lines.append(
            f"{target:<16} {name:<10} {len(some):>5} {len(times):>5} {middle:>9} {worst:>8} "
            f"{started:>10} {unlocked:>8} {lost:>5} {went_on:>7}"
        )
    return "\n".join(lines)


def _is_lost(kill: Kill) -> bool:
    return kill.back_s is None and not kill.after_next_start and not kill.unlocked


def main() -> None:
    if _IN_OWN_SPACE not in os.environ:
        os.environ[_IN_OWN_SPACE] = "1"
        os.execvp("unshare", ["unshare", "--mount", sys.executable, *sys.argv])
    os.makedirs(record.FOLDER, exist_ok=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", "mode=755,size=64k", "records", record.FOLDER], check=True)
    number = int(sys.argv[1]) if len(sys.argv) > 1 else 300
    file = Path(sys.argv[3]) if len(sys.argv) > 3 and sys.argv[3] != "-" else None
    kind = sys.argv[4] if len(sys.argv) > 4 else "h200"
    rng = random.Random(int(sys.argv[2]) if len(sys.argv) > 2 else 1)
    random.seed(rng.random())
    plan = [each for each in PLAN if kind != "mi210" or each[0] not in ("runner", "window")]
    chosen = [plan[at % len(plan)] for at in range(number)]
    rng.shuffle(chosen)
    kills = [Kill(**json.loads(line)) for line in file.read_text().splitlines()] if file and file.exists() else []
    with bench(kind, confirmed=False) as plain, bench(kind, confirmed=True) as confirmed:
        for at, (target, name) in list(enumerate(chosen))[len(kills) :]:
            one = (plain, confirmed)[at % 2]
            kills.append(one.kill(target, name, rng))
            print(f"{at + 1}/{number} {kills[-1]}", file=sys.stderr, flush=True)
            if file is not None:
                with file.open("a") as kept:
                    kept.write(json.dumps(asdict(kills[-1])) + "\n")
    lost = sum(_is_lost(kill) for kill in kills)
    print(f"{number} kills and faults; every other one with a confirmed lock as prior state; lost: {lost}")
    print(f"the board differed from its prior state at the moment of {sum(kill.changed for kill in kills)} of them")
    print(f"'back': as before within {BACK_S:g} s (of a runner: of the session's end); 'next start': after it;")
    print("'unlocked': the record is gone for good: named, exit status 1, and unlocked by `restore --defaults`\n")
    print(_table(kills))


if __name__ == "__main__":
    main()
