"""Boards through NVML."""
