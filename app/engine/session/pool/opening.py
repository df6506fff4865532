"""Opening a pool of boards: its address and certificates, the pool of this machine, and those of schedulers.

Importing this connects to nothing and starts nothing; Dask is imported by the first call that needs it.

A pool has an authority of its own, and one certificate with its key for all its members. The authority's key is not
kept, so that no other certificate can be made for the pool; a member is excluded by making new ones for the others. A
certificate identifies the pool, not the member: all members have the same rights.
"""

from __future__ import annotations

import datetime
import os
import re
import shutil
import stat
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

from ....base.errors import InputError, WattridgeError
from ....base.installation import how_to_add
from ....base.paths import PRIVATE_FILE, make_folder, private_folder
from ...children.scratch import scratch_folder
from ...children.supervised import Child, Supervisor
from ...runner.pool.pool import Certificates, Pool, PoolBoard, models_of

# --- address and certificates -----------------------------------------------------------------------------------------

DEFAULT_PORT: Final = 8786
_ADDRESS: Final = re.compile(
    r"(?:(?P<scheme>[a-z]+)://)?(?P<host>[A-Za-z0-9][A-Za-z0-9._-]*|\[[0-9A-Fa-f:.]+\])(?::(?P<port>\d{1,5}))?\Z"
)
_VALID: Final = datetime.timedelta(days=825)  # of a certificate
_SKEW: Final = datetime.timedelta(hours=1)  # of the clocks of the pool's machines
_REMEDY: Final = "HOST:PORT or tls://HOST:PORT, as `wattridge pool scheduler` prints it"


def parse_pool_address(text: str) -> str:
    """A scheduler's address in the form of Dask. Raises InputError, also for one without TLS."""
    address = _ADDRESS.match(text.strip())
    if address is None or int(address["port"] or DEFAULT_PORT) >= 1 << 16:
        raise InputError(f"'{text}' is no address of a scheduler", "pool", _REMEDY)
    if (address["scheme"] or "tls") != "tls":
        remedy = "start its scheduler with `wattridge pool scheduler`, and name it by tls://HOST:PORT"
        raise InputError(f"a pool speaks TLS only, not {address['scheme']}", text, remedy)
    return f"tls://{address['host']}:{address['port'] or DEFAULT_PORT}"


def find_certificates(folder: Path | None = None) -> Certificates:
    """The certificates in a folder, the user's own by default. Raises InputError if they are not there, or others
    can read the key."""
    certificates = Certificates(folder or private_folder("pool"))
    missing = [path.name for path in certificates.files if not path.is_file()]
    if missing:
        remedy = "make them with `wattridge pool certificates`, and copy them to all machines of the pool"
        raise InputError(f"{', '.join(missing)} of a pool's certificates is missing", str(certificates.folder), remedy)
    if os.name == "posix":
        status = os.stat(certificates.key)
        if status.st_mode & (stat.S_IRWXG | stat.S_IRWXO):
            raise InputError(
                "others can read the key of the pool", str(certificates.key), f"chmod 600 {certificates.key}"
            )
        if status.st_uid != os.getuid():
            what = "the key of the pool belongs to someone else"
            raise InputError(what, str(certificates.key), "copy it with your account")
    return certificates


def make_certificates(folder: Path | None = None) -> Certificates:
    """A new authority and the certificate of a new pool. Raises InputError if there are some, and WattridgeError."""
    made = Certificates(folder or private_folder("pool"))
    present = [path for path in made.files if os.path.lexists(path)]
    if present:
        remedy = "remove them first, or name another folder: the machines that have the old ones leave the pool"
        raise InputError("there is a pool's certificate already", str(present[0]), remedy)
    authority, certificate, key = _signed()
    try:
        make_folder(made.folder)
        for path, content in zip(made.files, (authority, certificate, key), strict=True):
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, PRIVATE_FILE)
            with os.fdopen(descriptor, "wb") as file:
                file.write(content)
    except OSError as error:
        raise WattridgeError(error.strerror or str(error), str(made.folder), "name another folder") from None
    return made


def _signed() -> tuple[bytes, bytes, bytes]:
    """An authority's certificate, the pool's and its key, as PEM: keys on P-256, signed with SHA-256."""
    try:
        from cryptography import x509
        from cryptography.hazmat.primitives import hashes, serialization
        from cryptography.hazmat.primitives.asymmetric import ec
        from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID
    except ImportError:
        raise WattridgeError("certificates need the package cryptography", "pool", how_to_add("pool")) from None
    now = datetime.datetime.now(datetime.UTC)

    def name(common: str) -> x509.Name:
        return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common)])

    def usage(*, signs_certificates: bool) -> x509.KeyUsage:
        return x509.KeyUsage(
            digital_signature=not signs_certificates,
            content_commitment=False,
            key_encipherment=False,
            data_encipherment=False,
            key_agreement=False,
            key_cert_sign=signs_certificates,
            crl_sign=signs_certificates,
            encipher_only=False,
            decipher_only=False,
        )

    signing, key = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
    begun = (
        x509.CertificateBuilder().issuer_name(name("Wattridge pool authority")).not_valid_before(now - _SKEW)
    ).not_valid_after(now + _VALID)
    identifier = x509.SubjectKeyIdentifier.from_public_key(signing.public_key())
    authority = (
        begun.subject_name(name("Wattridge pool authority"))
        .serial_number(x509.random_serial_number())
        .public_key(signing.public_key())
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(usage(signs_certificates=True), critical=True)
        .add_extension(identifier, critical=False)
        .sign(signing, hashes.SHA256())
    )
    certificate = (
        begun.subject_name(name("Wattridge pool"))
        .serial_number(x509.random_serial_number())
        .public_key(key.public_key())
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(usage(signs_certificates=False), critical=True)
        .add_extension(
            x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]), critical=False
        )
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(identifier), critical=False)
        .sign(signing, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    private = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    return authority.public_bytes(pem), certificate.public_bytes(pem), private


# --- the pool of this machine -----------------------------------------------------------------------------------------

READY_S: Final = 180.0
_LOOK_S: Final = 0.2
_PACKAGE: Final = __package__


def worker_children(
    selectors: Sequence[str],
    scheduler: str,
    certificates: Certificates,
    *,
    seed: int = 0,
    speed: float = 1.0,
    allow_control: bool = False,
) -> list[Child]:
    """The workers of this machine's boards as children; the noise of simulated ones begins at `seed` and differs."""
    return [
        Child(
            f"worker of {selector}",
            f"{_PACKAGE}.worker",
            {
                "scheduler": scheduler,
                "certificates": str(certificates.folder),
                "gpu": selector,
                "number": number,
                "workers": len(selectors),
                "seed": seed + number,
                "speed": speed,
                "allow_control": allow_control,
            },
        )
        for number, selector in enumerate(selectors)
    ]


class LocalPool:
    """The scheduler and the workers of this machine until `close`; a process of them that dies is started again."""

    def __init__(
        self,
        selectors: Sequence[str],
        *,
        seed: int = 0,
        speed: float = 1.0,
        allow_control: bool = False,
        on_line: Callable[[str], None] = lambda _: None,
        stop: threading.Event | None = None,
    ) -> None:
        """Raises WattridgeError if the scheduler does not start, a board does not open, or `stop` is set before."""
        self._stop = stop or threading.Event()
        self._folder = scratch_folder()
        self._supervisors: list[Supervisor] = []
        try:
            self.certificates = make_certificates(self._folder / "certificates")
            self.address = self._start_scheduler(on_line)
            children = worker_children(
                selectors, self.address, self.certificates, seed=seed, speed=speed, allow_control=allow_control
            )
            self.workers = self._supervise(children, on_line)
            for child in children:
                if self._until_ready(self.workers, child) is None:
                    raise WattridgeError(child.failed or "it does not get ready", child.name)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """End all of it. Safe to call twice."""
        for supervisor in reversed(self._supervisors):
            supervisor.close()
        self._supervisors.clear()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _start_scheduler(self, on_line: Callable[[str], None]) -> str:
        task = {"address": f"tls://127.0.0.1:{_free_port()}", "certificates": str(self.certificates.folder)}
        child = Child("scheduler", f"{_PACKAGE}.worker", task)
        self.scheduler = self._supervise([child], on_line)
        ready = self._until_ready(self.scheduler, child)
        if ready is None:
            raise WattridgeError(child.failed or "it does not start", "scheduler of the pool")
        return str(ready["address"])

    def _until_ready(self, supervisor: Supervisor, child: Child) -> Mapping[str, Any] | None:
        until, ready = time.monotonic() + READY_S, None
        while ready is None and not child.failed and not self._stop.is_set() and time.monotonic() < until:
            ready = supervisor.until_ready(child, _LOOK_S)
        return ready

    def _supervise(self, children: Sequence[Child], on_line: Callable[[str], None]) -> Supervisor:
        supervisor = Supervisor(children, on_line)
        self._supervisors.append(supervisor)
        return supervisor


def _free_port() -> int:
    """A port of loopback that is free now, which a scheduler keeps when it is started again."""
    import socket

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


# --- pools that are open ----------------------------------------------------------------------------------------------

THIS_COMPUTER: Final = "this computer"
WAIT_S: Final = 20.0  # for the boards of a pool


class OpenedPool:
    """An open pool, with the processes that were started for it."""

    def __init__(
        self,
        pool: Pool,
        where: str,
        options: Sequence[str] = (),
        end: Callable[[], None] = lambda: None,
        connect: Callable[[], Pool] | None = None,
    ) -> None:
        """Hold a pool; `where` names it in words, `options` are those of a command that uses it.

        `end` ends the processes that were started, and `connect` makes one more connection.
        """
        self.pool, self.where, self.options = pool, where, tuple(options)
        self.connect = connect
        self._end = end
        self._others: list[Pool] = []

    def by_model(self, model: str | None = None) -> list[tuple[Pool, Sequence[PoolBoard]]]:
        """The boards of a model, or of each model, with a connection of their own: one has one session at a time.

        Raises WattridgeError and InputError as `chosen_model`, and where a further connection cannot be made.
        """
        models = models_of(self.pool.boards())
        if model is not None or len(models) <= 1 or self.connect is None:
            return [(self.pool, chosen_model(self.pool, model))]
        self._others += [self.connect() for _ in range(len(models) - 1)]
        for other in self._others:
            _wait_for(other, len(self.pool.boards()), threading.Event())
        return list(zip((self.pool, *self._others), models.values(), strict=True))

    def close(self) -> None:
        """Leave the pool, and end the processes that were started for it. Safe to call twice."""
        for pool in (*self._others, self.pool):
            pool.close()
        self._end()


def require_dask() -> None:
    """Raise WattridgeError where Dask is not installed."""
    if find_spec("distributed") is None:
        raise WattridgeError("several boards need Dask", "pool", how_to_add("pool"))


def open_scheduler_pool(
    scheduler: str, certificates: Path | None, *, boards: int = 1, stop: threading.Event | None = None
) -> OpenedPool:
    """The pool of a scheduler, once so many boards are there, or after a while; its certificates lie in that folder.

    Raises InputError for a wrong address or wrong certificates, and WattridgeError if no scheduler answers.
    """
    require_dask()
    from ...runner.pool.dask_pool import DaskPool

    address = parse_pool_address(scheduler)
    pool = DaskPool(address, find_certificates(certificates), stop=stop)
    try:
        _wait_for(pool, boards, stop or threading.Event())
    except BaseException:
        pool.close()
        raise
    folder = () if certificates is None else ("--certificates", str(certificates))
    return OpenedPool(
        pool,
        address,
        ("--pool", address, *folder),
        connect=lambda: DaskPool(address, find_certificates(certificates)),
    )


def open_local_pool(
    selectors: Sequence[str],
    *,
    seed: int = 0,
    speed: float = 1.0,
    allow_control: bool = False,
    on_line: Callable[[str], None] = lambda _: None,
    stop: threading.Event | None = None,
) -> OpenedPool:
    """A pool of these boards of this machine, which runs until it is closed.

    `seed` and `speed` are of simulated boards; `on_line` is called, on any thread, with lines about the processes.
    Raises InputError and WattridgeError if one of the boards does not open.
    """
    require_dask()
    local = LocalPool(selectors, seed=seed, speed=speed, allow_control=allow_control, on_line=on_line, stop=stop)
    try:
        folder = local.certificates.folder
        opened = open_scheduler_pool(local.address, folder, boards=len(selectors), stop=stop)
    except BaseException:
        local.close()
        raise
    return OpenedPool(opened.pool, THIS_COMPUTER, ("--gpu", ",".join(selectors)), local.close, opened.connect)


def chosen_model(pool: Pool, model: str | None) -> Sequence[PoolBoard]:
    """The boards of a model, or of the only one. Raises WattridgeError without boards, and InputError."""
    models = models_of(pool.boards())
    if not models:
        raise WattridgeError("the pool has no boards", "pool", "on a machine with boards: wattridge worker SCHEDULER")
    if model is None and len(models) > 1:
        what = f"the pool has boards of several models: {', '.join(models)}"
        raise InputError(what, "pool", "name one with --model: energy is compared on boards of one model")
    if model is not None and model not in models:
        raise InputError(f"the pool has no board of the model '{model}'", "--model", f"one of {', '.join(models)}")
    return models[model or next(iter(models))]


def listed_boards(text: str) -> list[str]:
    """The selectors of a comma-separated list. Raises InputError if one is empty, or a real board is named twice."""
    selectors = [selector.strip() for selector in text.split(",")]
    real = [selector.lower() for selector in selectors if not selector.lower().startswith("simulated:")]
    if not all(selectors) or len(set(real)) < len(real):
        raise InputError(f"'{text}' is no list of boards", "--gpu", "as in 0,1,2,3")
    return selectors


def _wait_for(pool: Pool, boards: int, stop: threading.Event) -> None:
    until = time.monotonic() + WAIT_S
    while len(pool.boards()) < boards and time.monotonic() < until and not stop.wait(0.1):
        pass
