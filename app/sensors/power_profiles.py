"""Workload power profiles: settings for one kind of work that newer boards of NVIDIA's come with, by number.

A program requests some of them; the board enforces those that their priorities and conflicts leave (NVML's reference,
'Power Profile Information').
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Protocol, runtime_checkable

NO_PROFILE: Final = -1  # none is requested
MOST_PROFILES: Final = 255  # their numbers lie below that
_NAMES: Final = (  # nvmlPowerProfileType_t, from 0 on
    "max_p",
    "max_q",
    "compute",
    "memory_bound",
    "network",
    "balanced",
    "llm_inference",
    "llm_training",
    "rbm",
    "dcpcie",
    "hmma_sparse",
    "hmma_dense",
    "sync_balanced",
    "hpc",
    "mig",
    "max_q_1",
    "network_bound",
    "high_throughput_inference",
    "medium_throughput_inference",
    "low_latency_inference",
    "training",
    "inference",
    "max_q_2",
    "max_q_3",
    "low_priority_background",
)


@dataclass(frozen=True, slots=True)
class PowerProfile:
    """One that a board has."""

    name: str
    priority: int
    conflicts: tuple[int, ...]  # numbers of those that are not enforced beside it


@dataclass(frozen=True, slots=True)
class PowerProfiles:
    """Those of a board by number, ascending, and which of them are in force."""

    supported: Mapping[int, PowerProfile]
    requested: tuple[int, ...] | None  # None: not known here
    enforced: tuple[int, ...] | None


@runtime_checkable
class HasPowerProfiles(Protocol):
    """A board that may have them."""

    def power_profiles(self) -> PowerProfiles:
        """As they are now. Raises NotSupported if the driver or the board has none, GpuLost."""
        ...


def profile_name(kind: int) -> str:
    """The name of a kind, as NVML counts them; one that is newer than this program is named by its number."""
    return _NAMES[kind] if 0 <= kind < len(_NAMES) else f"profile_{kind}"
