"""A scheduler's address. Dask is not needed to read one: loading it takes a while."""

from __future__ import annotations

import re
from typing import Final

from ....errors import InputError

DEFAULT_PORT: Final = 8786
_ADDRESS: Final = re.compile(
    r"(?:(?P<scheme>[a-z]+)://)?(?P<host>[A-Za-z0-9][A-Za-z0-9._-]*|\[[0-9A-Fa-f:.]+\])(?::(?P<port>\d{1,5}))?\Z"
)
_REMEDY: Final = "HOST:PORT or tls://HOST:PORT, as `wattridge pool scheduler` prints it"


def parse_pool_address(text: str) -> str:
    """A scheduler's address as Dask has it. Raises InputError, also for one without TLS."""
    found = _ADDRESS.match(text.strip())
    if found is None or int(found["port"] or DEFAULT_PORT) >= 1 << 16:
        raise InputError(f"'{text}' is no address of a scheduler", "pool", _REMEDY)
    if (found["scheme"] or "tls") != "tls":
        remedy = "start its scheduler with `wattridge pool scheduler`, and name it by tls://HOST:PORT"
        raise InputError(f"a pool speaks TLS only, not {found['scheme']}", text, remedy)
    return f"tls://{found['host']}:{found['port'] or DEFAULT_PORT}"
