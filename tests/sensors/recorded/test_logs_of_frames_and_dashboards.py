"""Logs of games (MangoHud, PresentMon, FrameView), of dashboards (Grafana, W&B), and of more tools of a terminal."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from app.base.errors import InputError
from app.sensors.recorded.logs.read import Log, is_log, read_log
from app.sensors.recorded.recording import Recording

BEGAN = datetime(2024, 5, 1, 10, tzinfo=UTC)
WATTS = [300 + (7 * n) % 20 + n / 10 for n in range(30)]


def read(tmp_path: Path, text: str, name: str = "log.csv") -> Log:
    path = tmp_path / name
    path.write_text(text)
    assert is_log(path)
    return read_log(path)


def powers(recording: Recording) -> list[float]:
    name = next(name for name in ("power_instant_w", "power_average_w") if name in recording.by_name)
    return [float(value) for value in recording.by_name[name]]


def seconds(recording: Recording) -> list[float]:
    return [time / 1e9 for time in recording.time_ns.tolist()]


def stamps(form: str) -> list[str]:
    return [f"{BEGAN + timedelta(seconds=n):{form}}" for n in range(len(WATTS))]


def test_mangohud_has_its_headings_below_the_machine_s_and_counts_nanoseconds(tmp_path: Path) -> None:
    text = (
        "os,cpu,gpu,ram,kernel,driver,cpuscheduler\nArch Linux,AMD Ryzen 7,RTX 3080,32792464,6.6.1,,performance\n"
        "fps,frametime,cpu_load,cpu_power,gpu_load,cpu_temp,gpu_temp,gpu_core_clock,gpu_mem_clock,gpu_vram_used,gpu_power,"
        "ram_used,swap_used,process_rss,cpu_mhz,elapsed\n"
    )
    text += "".join(
        f"81.5,12.26,67.4,45.7,97,61,72,1905,9251,6.1,{watts:.0f},9.9,0.05,0,3500,{339251005 + 100_000_000 * n}\n"
        for n, watts in enumerate(WATTS)
    )
    log = read(tmp_path, text)
    assert log.tool == "MangoHud"
    assert powers(log.boards[0]) == [round(watts) for watts in WATTS]
    assert seconds(log.boards[0])[:3] == pytest.approx([0.0, 0.1, 0.2])
    assert float(log.boards[0].by_name["graphics_clock_mhz"][0]) == 1905


@pytest.mark.parametrize(
    ("header", "row"),
    [
        (
            "Application,GPU,CPU,TimeInSeconds,GPUOnlyPwr(W) (API),NV Pwr(W) (API),CPU Package Pwr(W)",
            "game.exe,RTX 3080,Ryzen,{s:.4f},NA,{w},80.1",
        ),
        (
            "Application,ProcessID,PresentRuntime,TimeInSeconds,CPUStartTime,FrameTime,GPUPower,GPUMemoryPower,CPUPower",
            "game.exe,1234,DXGI,{s:.4f},{ms:.4f},8.2,{w},20.5,65",
        ),
        (
            "Application,ProcessID,PresentRuntime,CPUStartTime,FrameTime,GPUPower,GPUVoltage,GPUFrequency",
            "game.exe,1234,DXGI,{ms:.4f},8.2,{w},1.05,2500",
        ),
    ],
    ids=["FrameView", "PresentMon's window", "PresentMon"],
)
def test_logs_of_frames_have_the_power_of_the_board_at_each(tmp_path: Path, header: str, row: str) -> None:
    lines = [row.format(s=0.0082 * n, ms=8.2 * n, w=watts) for n, watts in enumerate(WATTS)]
    log = read(tmp_path, "\n".join((header, *lines, "")))
    assert len(log.boards) == 1
    assert powers(log.boards[0]) == pytest.approx(WATTS)
    assert seconds(log.boards[0])[1] == pytest.approx(0.0082)


def test_a_panel_of_grafana_has_a_board_in_each_column_with_units_in_quoted_cells(tmp_path: Path) -> None:
    lines = [
        f'"{at}","{watts} W","{watts / 2} W"' for at, watts in zip(stamps("%Y-%m-%d %H:%M:%S"), WATTS, strict=True)
    ]
    log = read(tmp_path, "\n".join(('"Time","GPU 0","GPU 1"', *lines, "")))
    assert [powers(board) for board in log.boards] == [pytest.approx(WATTS), pytest.approx([w / 2 for w in WATTS])]


def test_an_export_of_wandb_has_the_readings_and_not_their_extremes(tmp_path: Path) -> None:
    name = "run-a - system/gpu.0.powerWatts"
    header = f'"Relative Time (Process)","{name}","{name}__MIN","{name}__MAX"'
    lines = [f'"{15 * n}","{watts}","{watts - 9}","{watts + 9}"' for n, watts in enumerate(WATTS)]
    log = read(tmp_path, "\n".join((header, *lines, "")))
    assert powers(log.boards[0]) == pytest.approx(WATTS)
    assert seconds(log.boards[0])[:2] == [0.0, 15.0]
    events = [
        {
            "system.gpu.0.powerWatts": watts,
            "system.gpu.0.gpu": 99,
            "system.gpu.0.powerPercent": 77,
            "_timestamp": 1.7e9 + 15 * n,
        }
        | {"_runtime": 15.0 * n}
        for n, watts in enumerate(WATTS)
    ]
    lines = [json.dumps(event) for event in events]
    assert powers(read(tmp_path, "\n".join((*lines, "")), "wandb-events.jsonl").boards[0]) == pytest.approx(WATTS)


def test_readings_of_gpustat_are_those_of_each_board(tmp_path: Path) -> None:
    queries = [
        {
            "hostname": "h",
            "query_time": f"{at}.000001",
            "gpus": [
                {"index": n, "uuid": f"GPU-{n}", "temperature.gpu": 61, "power.draw": round(w) - n} for n in (0, 1)
            ],
        }
        for at, w in zip(stamps("%Y-%m-%dT%H:%M:%S"), WATTS, strict=True)
    ]
    log = read(tmp_path, "".join(json.dumps(query) + "\n" for query in queries), "gpustat.jsonl")
    assert [powers(board) for board in log.boards] == [[round(w) - n for w in WATTS] for n in (0, 1)]
    text = "".join(
        f"host  {at}  550.54.15\n"
        + "".join(f"[{n}] NVIDIA A100 | 61'C,  99 %,  {round(w) - n} / 400 W | 1 / 40960 MB | me(9M)\n" for n in (0, 1))
        for at, w in zip(stamps("%a %b %e %H:%M:%S %Y"), WATTS, strict=True)
    )
    log = read(tmp_path, text, "gpustat.txt")
    assert [powers(board) for board in log.boards] == [[round(w) - n for w in WATTS] for n in (0, 1)]


@pytest.mark.parametrize("newer", [False, True])
def test_the_long_form_of_nvidia_smi_has_the_board_s_power_and_not_its_memory_s_or_module_s(
    tmp_path: Path, newer: bool
) -> None:
    form = "        Average Power Draw                : {0} W\n        Instantaneous Power Draw          : 1.5 W\n"
    board = "    GPU Power Readings\n" + (form if newer else "        Power Draw                        : {0} W\n")
    others = "    GPU Memory Power Readings \n" + form.format(60.1) + "    Module Power Readings\n" + form.format(500.1)
    text = "".join(
        f"\n==============NVSMI LOG==============\n\nTimestamp                            : {at}\nAttached GPUs : 2\n"
        + "".join(f"GPU 00000000:0{n}:00.0\n{board.format(round(w / n, 2))}{others if newer else ''}\n" for n in (1, 2))
        for at, w in zip(stamps("%a %b %e %H:%M:%S %Y"), WATTS, strict=True)
    )
    log = read(tmp_path, text, "smi.txt")
    assert [powers(each) for each in log.boards] == [[round(w / n, 2) for w in WATTS] for n in (1, 2)]


def test_cells_of_nvidia_smi_without_heading_and_units_are_known_by_their_decimals(tmp_path: Path) -> None:
    times = stamps("%Y/%m/%d %H:%M:%S.123")
    lines = [
        f"{at}, 0, NVIDIA RTX 4060, 9, 1284, 65, {w:.2f}, 400.00, 1470" for at, w in zip(times, WATTS, strict=True)
    ]
    log = read(tmp_path, "\n".join((*lines, "")))
    assert powers(log.boards[0]) == pytest.approx([round(w, 2) for w in WATTS])


def test_a_log_in_which_no_power_was_read_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "empty.csv"
    path.write_text("timestamp,power(W)\n" + "".join(f"{1717695920 + n},\n" for n in range(30)))
    with pytest.raises(InputError, match="no reading of power is in it"):
        read_log(path)


def test_the_long_form_as_driver_580_writes_it_on_an_h200() -> None:
    log = read_log(Path(__file__).parents[2] / "engine/formats/written_by_tools/nvidia_smi_q.txt")
    assert len(log.boards) == 1
    assert len(powers(log.boards[0])) == 3
    assert all(70 < watts < 90 for watts in powers(log.boards[0]))


def test_watts_of_the_gpu_beside_those_of_the_processor_are_the_board_s(tmp_path: Path) -> None:
    lines = [
        f"{at}.871213Z,{'' if n == 0 else 78.5},{w}"
        for n, (at, w) in enumerate(zip(stamps("%Y-%m-%dT%H:%M:%S"), WATTS, strict=True))
    ]
    log = read(tmp_path, "\n".join(("timestamp,cpu_watts,gpu_watts", *lines, "")))
    assert powers(log.boards[0]) == pytest.approx(WATTS)
