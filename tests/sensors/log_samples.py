# ruff: noqa: E501 - lines are as long as the tools write them
"""Logs of power as the tools write them, short: their layouts follow the tools' own sources and documentation."""

from __future__ import annotations

from collections.abc import Iterator

SMI_UNITS = """\
timestamp, index, name, power.draw [W], clocks.current.graphics [MHz], temperature.gpu, utilization.gpu [%], fan.speed [%], pstate, clocks_event_reasons.active
2026/04/19 17:05:55.470, 0, NVIDIA A100-SXM4-80GB, 60.50 W, 1410 MHz, 46, 0 %, [N/A], P0, 0x0000000000000001
2026/04/19 17:05:55.471, 1, NVIDIA A100-SXM4-80GB, 70.00 W, 1410 MHz, 46, 0 %, [N/A], P0, 0x0000000000000000
2026/04/19 17:05:55.970, 0, NVIDIA A100-SXM4-80GB, 100.50 W, 1395 MHz, 47, 90 %, [N/A], P0, 0x0000000000000004
2026/04/19 17:05:55.971, 1, NVIDIA A100-SXM4-80GB, [N/A], 1410 MHz, 46, 0 %, [N/A], P0, 0x0000000000000000
2026/04/19 17:05:56.470, 0, NVIDIA A100-SXM4-80GB, 140.50 W, 1395 MHz, 48, 99 %, [N/A], P0, 0x0000000000000004
2026/04/19 17:05:56.471, 1, NVIDIA A100-SXM4-80GB, 90.00 W, 1410 MHz, 46, 0 %, [N/A], P0, 0x0000000000000000
"""
SMI_NOUNITS = SMI_UNITS
for _unit in (" W,", " MHz,", " %,"):
    SMI_NOUNITS = SMI_NOUNITS.replace(_unit, ",")

DMON = """\
# gpu    pwr  gtemp  mtemp     sm    mem    enc    dec    jpg    ofa   mclk   pclk
# Idx      W      C      C      %      %      %      %      %      %    MHz    MHz
    0     61     40      -     10      2      0      0      0      0   1593    210
    1     70     41     45      0      0      0      0      0      0   1593    210
    0    101     42      -     99     60      0      0      0      0   1593   1410
    1     72     41     45      0      0      0      0      0      0   1593    210
# gpu    pwr  gtemp  mtemp     sm    mem    enc    dec    jpg    ofa   mclk   pclk
# Idx      W      C      C      %      %      %      %      %      %    MHz    MHz
    0    141     44      -     99     60      0      0      0      0   1593   1410
    1     74     41     45      0      0      0      0      0      0   1593    210
"""
DMON_DATED = """\
#Date       Time        gpu    pwr  gtemp  mtemp     sm    mem    enc    dec    jpg    ofa   mclk   pclk
#YYYYMMDD   HH:MM:SS    Idx      W      C      C      %      %      %      %      %      %    MHz    MHz
 20260419   23:59:59      0     61     40      -     10      2      0      0      0      0   1593    210
 20260420   00:00:00      0    101     42      -     99     60      0      0      0      0   1593   1410
 20260420   00:00:01      0    141     44      -     99     60      0      0      0      0   1593   1410
"""
DCGM = """\
#Entity         POWER             TOTEC                   SMCLK        TMPTR
ID              W                 mJ                                   C
GPU 0           61.000            5000000                 1410         40
GPU 1           N/A               7000000                 210          35
GPU 0           101.000           5081000                 1410         42
GPU 1           75.500            7072000                 210          35
GPU 0           141.000           5202000                 1410         44
GPU 1           76.500            7148000                 210          35
"""
LACT = """\
timestamp,Clockspeed (GPU),GPU Usage,Temp (edge),Temp (junction),Fan RPM,Fan,Power Draw,Power Draw (Avg),Power Cap,Clockspeed (VRAM),VRAM Size,VRAM Used,GPU Voltage
1733935225009,2400,99,60,75,1200,35.294117647058826,250.5,248,280,1250,16368,4096,1050
1733935225509,2410,99,61,76,1210,35.294117647058826,260.5,249,280,1250,16368,4096,1051
1733935226009,2405,99,61,76,1210,35.294117647058826,270.5,250,280,1250,16368,4096,1052
"""
ZEUS_MONITOR = """\
Time,Power
2022-07-13 02:07:36.708783111,32402
2022-07-13 02:07:36.761689374,32402
2022-07-13 02:07:36.814552346,32312
2022-07-13 02:07:36.8674
"""
ZEUS_POWER = """\
2024-05-01 12:00:00.123456 {'GPU0': 65.15, 'GPU1': 70.2}
2024-05-01 12:00:01.123456 {'GPU0': 67.15, 'GPU1': 70.4}
2024-05-01 12:00:02.123456 {'GPU0': 69.15, 'GPU1': 70.6}
"""
MLPERF = """\
Time,28-12-2020 15:21:14.682,Watts,22.950000,Volts,228.570000,Amps,0.206430,PF,0.486400,Mark,run_1
Time,28-12-2020 15:21:15.686,Watts,23.080000,Volts,228.440000,Amps,0.207320,PF,0.487400,Mark,run_1
Time,28-12-2020 15:21:16.691,Watts,22.990000,Volts,228.520000,Amps,0.206740,PF,0.486500,Mark,run_1
"""
PLAIN = "timestamp,power\n1733935225.009,28.873\n1733935225.069,28.789\n1733935225.129,28.9\n"
HEADERLESS = "1733935225.009,28.873\n1733935225.069,28.789\n1733935225.129,28.9\n"
SEMICOLONS = 'time;"power [mW]"\n0,0;28873\n0,06;28789\n0,12;28900\n'

SAMPLES = {
    "nvidia-smi with units": SMI_UNITS,
    "nvidia-smi without units": SMI_NOUNITS,
    "dmon": DMON,
    "dmon with times": DMON_DATED,
    "dcgmi dmon": DCGM,
    "LACT": LACT,
    "Zeus monitor": ZEUS_MONITOR,
    "Zeus power": ZEUS_POWER,
    "MLPerf": MLPERF,
    "plain": PLAIN,
    "headerless": HEADERLESS,
    "semicolons": SEMICOLONS,
}


def in_every_encoding(text: str) -> Iterator[bytes]:
    """As shells and spreadsheets save it."""
    yield text.encode()
    yield text.encode("utf-8-sig")
    yield text.encode("utf-16")
    yield text.replace("\n", "\r\n").encode()
