"""What the smaller meters do with odd input: lines, words that break off, counters that begin again, missing rights."""

from __future__ import annotations

import os
import sys
import threading
import time
from datetime import datetime
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.base.errors import InputError
from app.sensors.gpu import NoPermission, SensorError
from app.sensors.meters.meter import EnergyCounters, MeterLost
from app.sensors.meters.pm_counters import PmCounters, parts_of, read_counter
from app.sensors.meters.pmt import Pmt
from app.sensors.meters.powersensor2 import RoundReader
from app.sensors.meters.printed import PrintedMeter, command_meter, file_meter, parse_line
from app.sensors.meters.rapl import Rapl

# --- lines ------------------------------------------------------------------------------------------------------------

NOW = 1_700_000_000.125


@pytest.mark.parametrize(
    ("line", "stamp_ns", "since_1970"),
    [
        ("1700000000.125 231.5", NOW * 1e9, True),
        ("1700000000125,231.5", NOW * 1e9, True),
        ("1700000000125000;231.5 W", NOW * 1e9, True),
        ("1700000000125000000\t231.5", NOW * 1e9, True),
        ("12.5 231.5", 12.5e9, False),
        ("  231.5 watts ", None, False),
        ("2023-11-14T22:13:20.125+00:00, 231.5", NOW * 1e9, True),
        ("2023-11-14 22:13:20.125+00:00 231.5W", NOW * 1e9, True),
    ],
)
def test_a_line_is_read_whatever_its_time_stamp(line: str, stamp_ns: float | None, since_1970: bool) -> None:
    parsed = parse_line(line)
    assert parsed is not None
    assert parsed[0] == (None if stamp_ns is None else pytest.approx(stamp_ns, abs=1e3))
    assert parsed[1:] == (since_1970, 231.5)


def test_a_date_without_a_zone_is_of_this_computers() -> None:
    parsed = parse_line("2023-11-14 22:13:20, 10")
    assert parsed is not None
    assert parsed[0] == pytest.approx(datetime(2023, 11, 14, 22, 13, 20).timestamp() * 1e9)


@pytest.mark.parametrize("line", ["", "time,power", "# 1 2", "1 2 3 4", "nan", "1700000000 inf", "-5 100", "12:30 100"])
def test_what_is_no_line_is_passed_over(line: str) -> None:
    assert parse_line(line) is None


@settings(max_examples=40)
@given(st.text(max_size=60))
def test_no_line_breaks_it(line: str) -> None:
    parsed = parse_line(line)
    assert parsed is None or (np.isfinite(parsed[2]) and (parsed[0] is None or np.isfinite(parsed[0])))


def test_a_program_that_prints_no_power_is_refused_with_an_example(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.sensors.meters.printed.BEGIN_S", 0.3)
    with pytest.raises(SensorError, match=r"no lines of a time stamp and watts .* begins 'hello'") as refused:
        command_meter(f"{sys.executable} -c \"import time; print('hello', flush=True); time.sleep(9)\"")
    assert "231.5" in refused.value.remedy


def read_on(meter: PrintedMeter, seconds: float) -> None:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        meter.read()
        time.sleep(0.01)


def test_a_program_that_ends_is_lost_and_started_again(tmp_path: Path) -> None:
    program = tmp_path / "meter.py"
    program.write_text("import time\nprint('50.0\\n' * 6, flush=True)\ntime.sleep(0.1)\n")
    meter = command_meter(f"{sys.executable} {program}")
    try:
        with pytest.raises(MeterLost, match="has ended"):
            read_on(meter, 5.0)
        meter.reopen()
        time.sleep(0.3)  # by now it has ended again: the lines that it printed are read all the same
        assert meter.read().power_w[:, 0].tolist()[:1] == [50.0]
    finally:
        meter.close()


@pytest.mark.skipif(os.name != "posix", reason="ends groups of processes")
def test_what_a_meters_program_started_ends_with_it_though_it_holds_the_pipe(tmp_path: Path) -> None:
    program, child = tmp_path / "meter.py", tmp_path / "child"
    program.write_text(
        "import pathlib, signal, subprocess, time\n"
        "for _ in range(6):\n    print(50.0, flush=True)\n    time.sleep(0.01)\n"
        "quiet = subprocess.Popen(['sleep', '600'], preexec_fn=lambda: signal.signal(signal.SIGTERM, signal.SIG_IGN))\n"
        f"pathlib.Path({str(child)!r}).write_text(str(quiet.pid))\n"
        "time.sleep(600)\n"
    )
    meter = command_meter(f"{sys.executable} {program}")
    end_s = time.monotonic() + 60
    while not (child.exists() and child.read_text()) and time.monotonic() < end_s:
        time.sleep(0.01)
    closing = threading.Thread(target=meter.close, daemon=True)
    closing.start()
    closing.join(60)
    assert not closing.is_alive()
    while time.monotonic() < end_s and Path(f"/proc/{child.read_text()}/cmdline").exists():
        if not Path(f"/proc/{child.read_text()}/cmdline").read_bytes():  # nobody has taken its exit status yet
            break
        time.sleep(0.01)
    else:
        assert not Path(f"/proc/{child.read_text()}").exists()


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_a_file_meter_reads_files_alone(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(InputError, match="this is no file"):
        file_meter(tmp_path / "pipe")


# --- PowerSensor2 -----------------------------------------------------------------------------------------------------

LEVELS = st.lists(st.tuples(*[st.integers(0, 1023)] * 3), min_size=1, max_size=20)


def words(rounds: list[tuple[int, ...]], used: tuple[int, ...]) -> bytes:
    return bytes(
        byte
        for each in rounds
        for sensor, level in zip(used, each, strict=True)
        for byte in (sensor << 5 | level >> 5, 0xE0 | level & 0x1F)
    )


@settings(max_examples=25)
@given(LEVELS, st.lists(st.integers(1, 9), min_size=1))
def test_rounds_are_the_same_however_the_stream_is_cut(rounds: list[tuple[int, ...]], cuts: list[int]) -> None:
    used = (0, 2, 3)
    stream, reader, found, at = words(rounds, used), RoundReader(used), [], 0
    while at < len(stream):
        cut = cuts[at % len(cuts)]
        found.append(reader.feed(stream[at : at + cut]))
        at += cut
    assert np.concatenate(found).tolist() == [list(each) for each in rounds]


@settings(max_examples=25)
@given(LEVELS.filter(lambda rounds: len(rounds) > 2), st.data())
def test_a_lost_byte_of_a_stream_costs_its_own_round_alone(rounds: list[tuple[int, ...]], data: st.DataObject) -> None:
    used = (0, 2, 3)
    stream = words(rounds, used)
    lost = data.draw(st.integers(0, len(stream) - 1))
    found = RoundReader(used).feed(stream[:lost] + stream[lost + 1 :]).tolist()
    damaged = lost // (2 * len(used))
    left = [list(each) for each in rounds[:damaged] + rounds[damaged + 1 :]]
    assert found == left


# --- counters ---------------------------------------------------------------------------------------------------------


def test_power_is_the_difference_of_two_readings_of_a_counter() -> None:
    counters = EnergyCounters(1)
    assert not len(counters.sample(1_000_000_000, [100.0]).time_ns)
    stamps, power_w = counters.sample(1_500_000_000, [160.0])
    assert (stamps.tolist(), power_w.tolist()) == ([1_500_000_000], [[120.0]])
    assert not len(counters.sample(1_500_000_000, [160.0]).time_ns), "no time has passed"
    assert np.isnan(counters.sample(2_000_000_000, [10.0]).power_w[0, 0]), "it began again"
    assert counters.sample(2_500_000_000, [60.0]).power_w.tolist() == [[100.0]]


def test_pm_counters_are_the_wall_clocks_microseconds_and_named_by_their_parts(tmp_path: Path) -> None:
    for name in ("energy", "accel0_energy", "memory_energy", "freshness", "accel0_power"):
        (tmp_path / name).write_text("25013124 J 1674042093206044 us\n")
    assert parts_of(tmp_path) == ["node", "accel0", "memory"]
    assert read_counter(tmp_path / "energy", 10**18) == (25013124.0, 1674042093206044000 - 10**18)
    meter = PmCounters("accel0", tmp_path)
    assert meter.info.scope == "board"
    assert meter.info.least_s == 30.0
    assert [channel.name for channel in meter.channels] == [
        "pm_counters_w",
        "pm_counters_node_w",
        "pm_counters_memory_w",
    ]
    with pytest.raises(InputError, match="choose one of node, accel0, memory"):
        PmCounters("accel7", tmp_path)


@pytest.mark.parametrize("text", ["", "J", "nan J 5 us", "-4 J 5 us", "5 J late us"])
def test_a_damaged_counter_is_a_lost_meter(tmp_path: Path, text: str) -> None:
    (tmp_path / "energy").write_text(text)
    with pytest.raises(MeterLost):
        read_counter(tmp_path / "energy", 0)


def zone(folder: Path, name: str, energy_uj: int, whole_uj: int = 1_000_000) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "name").write_text(name)
    (folder / "max_energy_range_uj").write_text(str(whole_uj - 1))
    (folder / "energy_uj").write_text(str(energy_uj))
    return folder / "energy_uj"


def test_raples_counter_that_begins_again_goes_on(tmp_path: Path) -> None:
    counter = zone(tmp_path / "intel-rapl:0", "package-0", 900_000)
    meter = Rapl(tmp_path)
    time.sleep(0.02)
    counter.write_text("100000")
    [[power_w]] = meter.read().power_w.tolist()
    assert 0.0 < power_w <= 0.2 / 0.02


@pytest.mark.skipif(sys.platform == "win32" or os.geteuid() == 0, reason="needs rights that root always has")
def test_rapl_that_may_not_be_read_says_how_to_allow_it(tmp_path: Path) -> None:
    zone(tmp_path / "intel-rapl:0", "package-0", 900_000).chmod(0)
    with pytest.raises(NoPermission, match="sudo chmod"):
        Rapl(tmp_path)


def test_a_package_called_pmt_that_is_another_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    from types import ModuleType

    monkeypatch.setitem(sys.modules, "pmt", ModuleType("pmt"))  # as GNU Radio's, or that of PyPI
    with pytest.raises(InputError, match="`pmt` on PyPI is another package"):
        Pmt("rapl")
