"""What NVML reports of a board's workload power profiles. Nothing here requests one."""

from __future__ import annotations

from collections.abc import Callable
from ctypes import byref
from typing import Any

from ..power_profiles import MOST_PROFILES, PowerProfile, PowerProfiles, profile_name

_PREFIX = "nvmlDeviceWorkloadPowerProfile"


def read_power_profiles(ask: Callable[..., Any], structure: Callable[[str], Any]) -> PowerProfiles:
    """Ask a board; `structure` makes one of nvidia-ml-py's by name. Raises NotSupported and what `ask` raises."""
    info = structure("c_nvmlWorkloadPowerProfileProfilesInfo_v1_t")
    ask(f"{_PREFIX}GetProfilesInfo", byref(info))
    now = structure("c_nvmlWorkloadPowerProfileCurrentProfiles_v1_t")
    ask(f"{_PREFIX}GetCurrentProfiles", byref(now))
    supported = {}
    for number in _numbers(info.perfProfilesMask):
        each = info.perfProfile[number]
        name = profile_name(int(each.profileId))
        supported[number] = PowerProfile(name, int(each.priority), _numbers(each.conflictingmask))
    return PowerProfiles(supported, _numbers(now.requestedProfilesMask), _numbers(now.enforcedProfilesMask))


def _numbers(mask: Any) -> tuple[int, ...]:
    """The bits that are set in a mask of 255."""
    return tuple(at for at in range(MOST_PROFILES) if mask.mask[at // 32] >> at % 32 & 1)
