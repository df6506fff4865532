"""What AMD's own Python package reads from the library that it finds, as a line of JSON. A program of its own."""

from __future__ import annotations

import json
import sys

from amdsmi import amdsmi_interface as smi


def read(board: object) -> dict[str, object]:
    level = smi.amdsmi_wrapper.amdsmi_dev_perf_level_t()
    smi._check_res(smi.amdsmi_wrapper.amdsmi_get_gpu_perf_level(board, smi.ctypes.byref(level)))
    return {
        "uuid": smi.amdsmi_get_gpu_device_uuid(board),
        "bdf": smi.amdsmi_get_gpu_device_bdf(board),
        "asic": smi.amdsmi_get_gpu_asic_info(board),
        "driver": smi.amdsmi_get_gpu_driver_info(board),
        "power": smi.amdsmi_get_power_info(board),
        "cap": smi.amdsmi_get_power_cap_info(board),
        "energy": smi.amdsmi_get_energy_count(board),
        "graphics": smi.amdsmi_get_clock_info(board, smi.AmdSmiClkType.SYS),
        "memory": smi.amdsmi_get_clock_info(board, smi.AmdSmiClkType.MEM),
        "memory_clocks": smi.amdsmi_get_clk_freq(board, smi.AmdSmiClkType.MEM),
        "activity": smi.amdsmi_get_gpu_activity(board),
        "vram": smi.amdsmi_get_gpu_vram_usage(board),
        "range": smi.amdsmi_get_gpu_od_volt_info(board),
        "metrics": smi.amdsmi_get_gpu_metrics_info(board),
        "millivolt": smi.amdsmi_get_gpu_volt_metric(
            board, smi.AmdSmiVoltageType.VDDGFX, smi.AmdSmiVoltageMetric.CURRENT
        ),
        "level": level.value,
    }


def layout() -> dict[str, dict[str, list[int]]]:
    """Where each field of a structure lies: its offset and size."""
    wrapper = smi.amdsmi_wrapper
    kinds = ("gpu_metrics", "power_cap_info", "clk_info", "od_volt_freq_data", "frequencies", "vram_usage", "range")
    found = {}
    for kind in kinds:
        structure = getattr(wrapper, f"struct_amdsmi_{kind}_t")
        fields = {name: getattr(structure, name) for name, *_ in structure._fields_}
        found[kind] = {name: [field.offset, field.size] for name, field in fields.items()}
    return found


smi.amdsmi_init()
boards = smi.amdsmi_get_processor_handles()
if sys.argv[1:] == ["set"]:  # as root: its own setters, against which ours are held
    smi.amdsmi_set_power_cap(boards[0], 0, 200_000_000)
    smi.amdsmi_set_gpu_clk_range(boards[0], 900, 1200, smi.AmdSmiClkType.SYS)
elif sys.argv[1:] == ["auto"]:
    smi.amdsmi_set_gpu_perf_level(boards[0], smi.AmdSmiDevPerfLevel.AUTO)
print(json.dumps([layout()] if sys.argv[1:] == ["layout"] else [read(board) for board in boards], default=str))
smi.amdsmi_shut_down()
