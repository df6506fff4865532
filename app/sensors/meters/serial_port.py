"""`SerialPort`: bytes to and from a device on a USB serial line, without waiting; and the ports there are.

POSIX systems need nothing but the standard library. On Windows pyserial is used, which the extra `meters` installs.
"""

from __future__ import annotations

import os
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, NamedTuple, Protocol

from ...base.errors import InputError
from ...base.installation import how_to_add
from ..gpu import NoPermission, SensorError
from .meter import MeterLost

_AT_ONCE: Final = 1 << 16
_REPLUG = "plug it in again, it is found by itself"


class FoundPort(NamedTuple):
    """A serial port, and what the device behind it says of itself; empty if it says nothing."""

    path: str
    product: str


class SerialPort(Protocol):
    """An open port. Exclusive: no other program can open it meanwhile."""

    def read(self) -> bytes:
        """What has arrived; empty if nothing has. Raises MeterLost where the device is gone."""
        ...

    def write(self, data: bytes) -> None:
        """Send. Raises MeterLost where the device is gone."""
        ...

    def close(self) -> None: ...


def open_port(path: str, baud: int) -> SerialPort:
    """Open a port, raw, with eight bits and no parity. Raises InputError if there is none of that name, and
    SensorError if it does not open. The rate has no meaning for a device that is USB itself.
    """
    return _windows_port(path, baud) if sys.platform == "win32" else _PosixPort(path, baud)


def find_ports() -> list[FoundPort]:
    """USB serial ports, by their names."""
    if sys.platform == "win32":
        with suppress(ImportError):
            from serial.tools import list_ports

            return [FoundPort(port.device, port.product or port.description or "") for port in list_ports.comports()]
        return []
    if sys.platform == "darwin":
        return [FoundPort(str(path), "") for path in sorted(Path("/dev").glob("cu.usb*"))]
    return [
        FoundPort(f"/dev/{tty.name}", _product_of(tty))
        for pattern in ("ttyACM*", "ttyUSB*")
        for tty in sorted(Path("/sys/class/tty").glob(pattern))
    ]


def exchange(port: SerialPort, asked: bytes, answer: int | bytes, patience_s: float) -> bytes:
    """Send, and wait for so many bytes, or up to the bytes that end the answer; what has come by then."""
    port.write(asked)
    got = b""
    deadline = time.monotonic() + patience_s
    while len(got) < answer if isinstance(answer, int) else answer not in got:
        got += port.read()
        if time.monotonic() > deadline:
            break
        time.sleep(0.001)
    return got


def end_stream(port: SerialPort) -> None:
    """Tell a PowerSensor, of either generation, to send no more, where it is still there; and close its port."""
    try:
        port.write(b"T")
    except SensorError:
        pass  # it is gone
    finally:
        port.close()


def _product_of(tty: Path) -> str:
    """What the USB device that a port belongs to says of itself."""
    folder = (tty / "device").resolve()
    for parent in (folder, *folder.parents[:3]):
        with suppress(OSError, UnicodeDecodeError):
            return (parent / "product").read_text().strip()
    return ""


class _PosixPort:
    def __init__(self, path: str, baud: int) -> None:
        import fcntl
        import termios
        import tty

        self._path = path
        try:
            self._fd = os.open(path, os.O_RDWR | os.O_NOCTTY | os.O_NONBLOCK)
        except FileNotFoundError:
            there = ", ".join(port.path for port in find_ports()) or "none"
            raise InputError("there is no such serial port", path, f"USB serial ports here: {there}") from None
        except PermissionError:
            remedy = "add your user to the group 'dialout' (or 'uucp') and log in again"
            raise NoPermission("this port may not be opened", path, remedy) from None
        except OSError as error:
            raise SensorError(f"the port does not open: {error.strerror}", path, "plug the meter in again") from None
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            tty.setraw(self._fd)
            mode = termios.tcgetattr(self._fd)
            mode[2] |= termios.CLOCAL | termios.CREAD
            speed = getattr(termios, f"B{baud}", None)
            if speed is not None:
                mode[4] = mode[5] = speed
            termios.tcsetattr(self._fd, termios.TCSANOW, mode)
            termios.tcflush(self._fd, termios.TCIOFLUSH)
        except BlockingIOError:
            self.close()
            raise SensorError("another program uses this port", path, "end it first") from None
        except (termios.error, OSError) as error:
            self.close()
            raise InputError(f"this is no serial port: {error}", path, "name the meter's port") from None

    def read(self) -> bytes:
        parts: list[bytes] = []
        while True:
            try:
                part = os.read(self._fd, _AT_ONCE)
            except BlockingIOError:
                break
            except OSError as error:
                raise MeterLost(f"the meter is gone: {error.strerror}", self._path, _REPLUG) from None
            if not part:  # a terminal that hung up reads as ended
                if not parts:
                    raise MeterLost("the meter is gone", self._path, _REPLUG)
                break
            parts.append(part)
        return b"".join(parts)

    def write(self, data: bytes) -> None:
        try:
            os.write(self._fd, data)
        except OSError as error:
            raise MeterLost(f"the meter takes no commands: {error.strerror}", self._path, _REPLUG) from None

    def close(self) -> None:
        if self._fd >= 0:
            with suppress(OSError):
                os.close(self._fd)
            self._fd = -1


def _windows_port(path: str, baud: int) -> SerialPort:
    try:
        import serial
    except ImportError:
        raise InputError("serial ports need pyserial on Windows", path, how_to_add("meters")) from None
    try:
        return _PyserialPort(serial.Serial(path, baud, timeout=0, write_timeout=1.0))
    except (serial.SerialException, ValueError) as error:
        raise SensorError(f"the port does not open: {error}", path, "end what uses it, or name another port") from None


class _PyserialPort:
    def __init__(self, port: Any) -> None:
        self._port = port

    def read(self) -> bytes:
        try:
            return bytes(self._port.read(_AT_ONCE))
        except OSError as error:  # SerialException is one
            raise MeterLost(f"the meter is gone: {error}", self._port.name, _REPLUG) from None

    def write(self, data: bytes) -> None:
        try:
            self._port.write(data)
        except OSError as error:
            raise MeterLost(f"the meter takes no commands: {error}", self._port.name, _REPLUG) from None

    def close(self) -> None:
        self._port.close()
