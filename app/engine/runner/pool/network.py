"""How the parts of a pool reach each other: TLS in both directions, on every address, and nothing else that listens.

Dask unpickles what its peers send, so a peer is whoever has the pool's certificate, and nobody else.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any, Final

import dask
from distributed.security import Security

from .certificates import Certificates

# What Dask would do otherwise: serve pages, load modules, write on the terminal, spill to disk, try a task again.
_SETTINGS: Final[Mapping[str, Any]] = {
    "distributed.comm.require-encryption": True,
    "distributed.comm.default-scheme": "tls",
    "distributed.comm.tls.min-version": 1.3,
    "distributed.scheduler.allowed-failures": 0,
    "distributed.scheduler.http.routes": [],
    "distributed.scheduler.preload": [],
    "distributed.scheduler.work-stealing": False,
    "distributed.scheduler.worker-ttl": "2 minutes",
    "distributed.worker.http.routes": [],
    "distributed.worker.preload": [],
    "distributed.worker.memory.target": False,
    "distributed.worker.memory.spill": False,
    "distributed.worker.memory.pause": False,
    "distributed.worker.memory.terminate": False,
    "distributed.worker.profile.enabled": False,
    "distributed.admin.tick.limit": "1h",
    "distributed.admin.low-level-log-length": 100,
}


def settle() -> None:
    """Set this process's Dask up for a pool, whatever the user's own configuration of Dask says."""
    dask.config.set(_SETTINGS)
    for name in ("distributed", *(name for name in logging.root.manager.loggerDict if name.startswith("distributed."))):
        logging.getLogger(name).setLevel(logging.CRITICAL + 1)


def security_of(certificates: Certificates) -> Security:
    """TLS with the pool's certificate on both sides."""
    key, certificate = str(certificates.key), str(certificates.certificate)
    roles = {
        f"tls_{role}_{part}": path
        for role in ("client", "scheduler", "worker")
        for part, path in (("key", key), ("cert", certificate))
    }
    return Security(require_encryption=True, tls_ca_file=str(certificates.authority), **roles)
