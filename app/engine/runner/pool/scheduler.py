"""The scheduler of a pool: Dask's, with TLS, without pages to look at, and one that never tries a task again."""

from __future__ import annotations

from typing import Any

from distributed import Scheduler
from distributed.comm.addressing import parse_host_port

from ....errors import WattridgeError
from .certificates import Certificates
from .network import security_of, settle


class PoolScheduler(Scheduler):  # type: ignore[misc]  # Dask has no types
    """Listens on one port, for those with the pool's certificate."""

    def start_http_server(self, *_: Any, **__: Any) -> None:
        """None is started: nothing listens that TLS does not guard."""


async def start_scheduler(address: str, certificates: Certificates) -> PoolScheduler:
    """A scheduler that listens at `tls://HOST:PORT`; port 0 is any. Raises WattridgeError where it cannot."""
    settle()
    host, port = parse_host_port(address.removeprefix("tls://"))
    scheduler = PoolScheduler(
        host=host, port=port, protocol="tls", security=security_of(certificates), dashboard=False, allowed_failures=0
    )
    try:
        await scheduler
    except (OSError, ValueError, RuntimeError) as error:  # Dask's own is a RuntimeError about the system's
        cause = error.__cause__ or error
        reason = getattr(cause, "strerror", None) or str(cause)
        raise WattridgeError(f"the scheduler cannot listen: {reason}", address, "choose another address") from None
    return scheduler
