"""Stub."""

from __future__ import annotations


def triton_version() -> str | None:
    return None
