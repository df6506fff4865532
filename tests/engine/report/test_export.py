"""What is exported can be read back, compiled and run; nothing of another origin is overwritten."""

from __future__ import annotations

import dataclasses
import json
import math
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.base.errors import InputError, WattridgeError
from app.engine.formats.c_header import c_header, c_value, identifier
from app.engine.formats.csv_table import read_csv, write_csv
from app.engine.formats.kernel_tuner import write_cache
from app.engine.formats.names import heading, name_of_heading, unit_of
from app.engine.formats.nvidia_smi import clock_script
from app.engine.formats.own import About
from app.engine.formats.read import read_recording
from app.engine.formats.t4 import write_t4
from app.engine.report.export import choose, export_header, export_json, export_script, export_session
from app.engine.results.measurement import Measurement, State, Value
from app.engine.results.objectives import Goal, Objective
from app.engine.space.result_table import ResultTable
from app.engine.space.search_space import space_of_table
from app.engine.specification.plan import SessionPlan
from app.sensors.event_reasons import EventReason


def session() -> ResultTable:
    rows: list[tuple[Value, ...]] = [
        (32, "fast", True, 900),
        (64, "12", False, 900),
        (64, "12", False, 1200),
        (32, "fast", False, 1200),
    ]
    table = ResultTable(space_of_table({"block_size_x": (), "mode": (), "padded": (), "graphics_clock_mhz": ()}, rows))
    parameters = tuple(
        dataclasses.replace(p, device_setting=p.name == "graphics_clock_mhz") for p in table.space.parameters
    )
    table = ResultTable(dataclasses.replace(table.space, parameters=parameters))
    for number, values in enumerate(rows):
        configuration = dict(zip(table.space.names, values, strict=True))
        row = table.space.row_of(configuration)
        assert row is not None
        ok = number != 3
        table.append(
            Measurement(
                row=row,
                configuration=configuration,
                state=State.OK if ok else State.TIMEOUT,
                values={"time_s": 1 / 3 + number, "energy_j": 5.0, "GFLOPS/W": 10.0 + number} if ok else {},
                intervals={"time_s": (1.3, 1.4)} if number == 1 else {},
                error="" if ok else 'took too long, "really",\nvery long',
                message="kernel.cu(3): warning: 'x' was set,\nbut never used" if number == 0 else "",
                window_ns=(10**15, 10**15 + 3 * 10**8) if ok else None,
                observed_clock_mhz=887.5 if ok else math.nan,
                event_reasons=int(EventReason.POWER_CAP) if number == 2 else 0,
                power_source="driver buffer",
                source="simulated",
                timestamp_s=1.7e9 + number + 0.123456789,
                cost_s=0.1 + 0.2,
            )
        )
    return table


def plan(table: ResultTable) -> SessionPlan:
    return SessionPlan(
        title="my kernel/4096",
        gpu="A100 (twin)",
        driver="",
        source="simulated",
        space=table.space,
        objective=Objective(Goal("GFLOPS/W", True)),
        strategy="brute_force",
    )


ABOUT = About("A100", "k", Objective(Goal("GFLOPS/W", True)), "simulated")


def measurements_of(table: ResultTable) -> list[str]:
    """Every measurement as text, whatever the order; NaN equals NaN."""
    measurements = [table.measurement(index) for index in range(len(table))]
    return sorted(repr(dataclasses.replace(m, configuration=dict(m.configuration))) for m in measurements)


# --- there and back ---------------------------------------------------------------------------------------------------


def test_csv_gives_the_same_session_back(tmp_path: Path) -> None:
    table = session()
    again = read_csv(write_csv(table, tmp_path / "session.csv", ABOUT))
    assert measurements_of(again.table()) == measurements_of(table)
    assert again.space().parameters[3].device_setting


def test_cache_gives_the_same_session_back(tmp_path: Path) -> None:
    table = session()
    path = write_cache(table, tmp_path / "cache.json", ABOUT)
    again = read_recording(path)
    assert measurements_of(again.table()) == measurements_of(table)
    assert again.space().names == table.space.names


def test_cache_is_one_that_kernel_tuner_knows(tmp_path: Path) -> None:
    path = write_cache(session(), tmp_path / "cache.json", ABOUT)
    document = json.loads(path.read_text())
    assert document["tune_params_keys"] == ["block_size_x", "mode", "padded", "nvml_gr_clock"]
    assert document["tune_params"]["nvml_gr_clock"] == [900, 1200]
    entry = document["cache"]["32,fast,True,900"]
    assert entry["time"] == pytest.approx(1000 / 3)
    assert document["cache"]["32,fast,False,1200"]["__error__"] == "RuntimeFailedConfig"


def test_a_published_cache_survives_both_formats(shared_data: Path, tmp_path: Path) -> None:
    cache = read_recording(shared_data / "kernel-tuner/kt_vector_add_RTX4000Ada_PowerSensor3_15.json")
    table = cache.table()
    about = About(cache.device, cache.kernel, cache.objective, units=cache.units)
    assert measurements_of(read_recording(write_cache(table, tmp_path / "c.json", about)).table()) == measurements_of(
        table
    )
    assert measurements_of(read_recording(write_t4(table, tmp_path / "t4.json", about)).table()) == measurements_of(
        table
    )
    csv = write_csv(table, tmp_path / "c.csv", about)
    assert measurements_of(read_csv(csv).table()) == measurements_of(table)
    assert "ps_energy [J]" in csv.read_text().splitlines()[0]


@pytest.mark.parametrize("damage", ["", "a,b\n1,2\n", "block_size_x,state,error\n1,ok,\n"])
def test_other_csv_is_recognised(tmp_path: Path, damage: str) -> None:
    path = tmp_path / "x.csv"
    path.write_text(damage)
    with pytest.raises(InputError, match="not a session"):
        read_csv(path)


def test_a_damaged_session_is_one_line_with_its_row(tmp_path: Path) -> None:
    path = write_csv(session(), tmp_path / "session.csv", ABOUT)
    path.write_text(path.read_text().replace(",ok,", ",fine,", 1))
    with pytest.raises(InputError, match=r"line 3.*fine"):
        read_csv(path)


# --- one configuration ------------------------------------------------------------------------------------------------


def test_json_tells_every_figure_with_unit_and_source() -> None:
    table = session()
    document = json.loads(export_json(choose(plan(table), table, 7, None)))
    assert document["configuration"]["graphics_clock_mhz"] == 1200, "the best by the objective"
    assert document["values"]["time_s"]["unit"] == "s"
    assert document["values"]["GFLOPS/W"] == {
        "value": 12.0,
        "unit": "GFLOPS/W",
        "interval_95": None,
        "source": "simulated, computed from the measured values",
    }
    assert document["values"]["energy_j"]["source"] == "simulated, measured by driver buffer"
    assert "SIMULATED" in document["provenance"]
    assert document["event_reasons"] == ["power cap"]
    assert document["window_s"] == pytest.approx(0.3)
    assert document["wattridge"]["version"]
    assert document["session"] == 7


def test_a_chosen_index_wins_over_the_best() -> None:
    table = session()
    assert choose(plan(table), table, None, 1).measurement.configuration["graphics_clock_mhz"] == 900


def test_a_session_in_which_all_failed_has_nothing_to_export() -> None:
    table = session()
    failed = ResultTable(table.space)
    failed.append(table.measurement(3))
    with pytest.raises(WattridgeError, match="no configuration succeeded"):
        choose(plan(failed), failed, None, None)


@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler here")
def test_header_compiles(tmp_path: Path) -> None:
    table = session()
    header = export_header(choose(plan(table), table, None, 0))
    assert "graphics_clock_mhz 9" not in header, "a clock is no #define"
    assert "SIMULATED" in header
    (tmp_path / "k.h").write_text(header)
    (tmp_path / "k.c").write_text(
        '#include "k.h"\n#include "k.h"\nint x[block_size_x == 32 && padded == 1 ? 1 : -1];\n'
    )
    subprocess.run(["cc", "-fsyntax-only", "-Wall", "-Werror", tmp_path / "k.c"], check=True, timeout=30)


def test_files_of_several_sessions_in_one_folder_say_which_they_are_of() -> None:
    table = session()
    for write in (export_header, export_script):
        assert "(session 12)." in write(choose(plan(table), table, 12, 0))
        assert "session" not in write(choose(plan(table), table, 0, 0)), "a file that is looked at has no number"


def test_what_compiled_the_measured_kernel_is_said() -> None:
    """Two compilers' machine code of one source may differ by a quarter of the time."""
    table = session()
    compiled = dataclasses.replace(plan(table), origin={"compiler": "NVRTC 13.0"})
    assert "measured as compiled by NVRTC 13.0" in export_header(choose(compiled, table, None, 0))
    assert "compiled by" not in export_header(choose(plan(table), table, None, 0))


NAMES = st.text(min_size=1, max_size=10)


@given(st.dictionaries(NAMES, st.integers() | st.booleans() | st.text(max_size=10), max_size=6), st.lists(st.text()))
def test_header_of_anything_has_valid_distinct_names_and_closed_comments(
    parameters: dict[str, Value], remarks: list[str]
) -> None:
    header = c_header("a title", parameters, remarks)
    defines = [line.split(" ", 2) for line in header.split("\n") if line.startswith("#define ")][1:]
    names = [parts[1] for parts in defines]
    assert len(set(names)) == len(parameters) == len(names)
    assert all(name.isascii() and name.isidentifier() for name in names)
    outside = header
    while "/*" in outside:
        before, _, rest = outside.partition("/*")
        _, closed, after = rest.partition("*/")
        assert closed
        outside = before + after
    assert all(line.startswith("#") or not line for line in outside.split("\n"))


def test_names_and_values_as_c_reads_them() -> None:
    assert [identifier(n) for n in ("block size", "2d", "int", "ok_1")] == ["block_size", "_2d", "int_", "ok_1"]
    assert [c_value(v) for v in (True, -3, 2.5, "float4", 'a"b\\')] == ["1", "(-3)", "2.5", "float4", '"a\\042b\\134"']


def test_script_sets_and_resets_what_the_configuration_names(tmp_path: Path) -> None:
    table = session()
    script = export_script(choose(plan(table), table, None, None))
    assert "SIMULATED" in script
    assert run(tmp_path, script, "set", "1") == ["-i 1 -lgc 1200,1200"]
    assert run(tmp_path, script, "reset") == ["-i 0 -rgc"]


def test_script_puts_the_default_power_limit_back(tmp_path: Path) -> None:
    script = clock_script({"power_limit_w": 250, "memory_clock_mhz": 2619}, [])
    assert run(tmp_path, script, "set") == ["-i 0 -pl 250", "-i 0 -lmc 2619,2619"]
    query = "-i 0 --query-gpu=power.default_limit --format=csv,noheader,nounits"
    assert run(tmp_path, script, "reset") == [query, "-i 0 -pl 300.00", "-i 0 -rmc"]


def test_script_leaves_an_untouched_setting_alone_and_says_so(tmp_path: Path) -> None:
    script = clock_script({"memory_clock_mhz": "untouched", "graphics_clock_mhz": 1200}, [])
    assert "# Left as the board has it: memory_clock_mhz = untouched" in script
    assert run(tmp_path, script, "set") == ["-i 0 -lgc 1200,1200"]
    assert run(tmp_path, script, "reset") == ["-i 0 -rgc"]
    alone = clock_script({"graphics_clock_mhz": "untouched"}, [])
    assert run(tmp_path, alone, "set") == run(tmp_path, alone, "reset") == []


def run(folder: Path, script: str, *words: str) -> list[str]:
    """Run the script with an nvidia-smi that only writes down what it was asked."""
    log = folder / "asked"
    log.write_text("")
    fake = folder / "nvidia-smi"
    fake.write_text(f'#!/bin/sh\necho "$@" >> "{log}"\ncase "$*" in *default_limit*) echo 300.00;; esac\n')
    fake.chmod(0o755)
    (folder / "script.sh").write_text(script)
    path = f"{folder}:/usr/bin:/bin"
    subprocess.run(["sh", folder / "script.sh", *words], check=True, env={"PATH": path}, timeout=30)
    return log.read_text().splitlines()


@given(st.dictionaries(NAMES, st.integers() | st.floats() | st.text()), st.lists(st.text(), max_size=3))
def test_script_of_anything_only_comments_on_what_it_does_not_know(
    settings: dict[str, Value], remarks: list[str]
) -> None:
    script = clock_script(settings, remarks)
    empty = clock_script({}, [])
    assert [line for line in script.split("\n") if not line.startswith("#")] == [
        line for line in empty.split("\n") if not line.startswith("#")
    ]


def test_script_is_valid_shell() -> None:
    table = session()
    for index in (0, 1, 2):
        script = export_script(choose(plan(table), table, None, index))
        subprocess.run(["sh", "-n"], input=script.encode(), check=True, timeout=30)


# --- files ------------------------------------------------------------------------------------------------------------


def test_every_kind_is_written_and_written_again(tmp_path: Path) -> None:
    table = session()
    for _ in range(2):
        files = export_session(plan(table), table, 1, None, tmp_path / "new" / "folder", existing="replace")
        assert [f.name for f in files] == [
            "my-kernel-4096.json",
            "my-kernel-4096.h",
            "my-kernel-4096-clocks.sh",
            "my-kernel-4096-session.csv",
            "my-kernel-4096-cache.json",
            "my-kernel-4096-t4.json",
            "receipt.json",
        ]
        assert all(f.stat().st_size > 0 for f in files)
    assert len(list((tmp_path / "new" / "folder").iterdir())) == len(files), "nothing temporary stays"


def test_only_the_kinds_asked_for(tmp_path: Path) -> None:
    table = session()
    files = export_session(plan(table), table, 1, None, tmp_path, ["csv"])
    assert [file.name for file in files] == ["my-kernel-4096-session.csv", "receipt.json"]
    with pytest.raises(InputError, match="unknown kind 'pdf'"):
        export_session(plan(table), table, 1, None, tmp_path, ["pdf"])


def test_a_file_of_another_origin_is_never_overwritten(tmp_path: Path) -> None:
    table = session()
    foreign = tmp_path / "my-kernel-4096.h"
    foreign.write_text("int mine;\n")
    with pytest.raises(WattridgeError, match="another origin"):
        export_session(plan(table), table, 1, None, tmp_path, existing="replace")
    assert foreign.read_text() == "int mine;\n"
    assert list(tmp_path.iterdir()) == [foreign], "nothing was written beside it"


def test_what_an_earlier_export_left_and_this_one_lacks_is_named(tmp_path: Path) -> None:
    table, said = session(), list[str]()
    (tmp_path / "my-kernel-4096.cu").write_text("// Written by Wattridge\n")
    export_session(plan(table), table, 1, None, tmp_path, ["header"], said.append, existing="replace")
    assert said == [], "one kind was asked for"
    export_session(plan(table), table, 2, None, tmp_path, on_remark=said.append, existing="replace")
    assert said == ["Of an earlier export, not of this one: my-kernel-4096.cu."]
    assert (tmp_path / "my-kernel-4096.cu").is_file(), "an export deletes nothing"


def test_a_folder_that_cannot_be_written_is_reported(tmp_path: Path) -> None:
    table = session()
    in_the_way = tmp_path / "file"
    in_the_way.write_text("")
    with pytest.raises(WattridgeError, match="cannot be written"):
        export_session(plan(table), table, 1, None, in_the_way / "folder")


def test_units_and_headings() -> None:
    assert unit_of("time_s", {}) == "s"
    assert unit_of("nvml_gr_clock", {}) == "MHz"
    assert unit_of("GFLOP/s", {}) == "GFLOP/s"
    assert unit_of("reg", {}) == ""
    assert heading("ps_energy", {"ps_energy": "J"}) == "ps_energy [J]"
    assert heading("time_s", {}) == "time_s"
    assert name_of_heading("ps_energy [J]") == "ps_energy"
