"""Text files: read within bounds, written whole or not at all.

Opening what the user names: a file, or a pipe (`<(...)`, a FIFO), which is read once and kept.
"""

from __future__ import annotations

import codecs
import gzip
import hashlib
import io
import os
import re
import secrets
import stat
import time
import zlib
from collections.abc import Iterable, Iterator
from itertools import chain, count
from pathlib import Path
from typing import Final

from .errors import InputError, WattridgeError
from .paths import is_private, make_folder

MAXIMUM_PIPED_BYTES: Final = 2**29
WRITER_S: Final = 2.0  # that a pipe may wait for somebody to write into it
PIPED_S: Final = 300.0  # and all that it gives may take
_piped: dict[tuple[int, int], bytes] = {}  # by device and inode: a pipe gives its content only once a process


def is_there(path: Path | str) -> bool:
    """Whether something of that name exists; False also for a name that no file can have."""
    return os.path.exists(path)


def is_input(path: Path | str) -> bool:
    """Whether it can be read: a file, a pipe or a device, but not a folder."""
    return os.path.exists(path) and not os.path.isdir(path)


def open_input(path: Path | str) -> io.BufferedReader | io.BytesIO:
    """Open for reading, from the beginning each time, also where it is a pipe.

    Raises OSError, ValueError for a name with a null byte, and InputError for a device, a socket, a pipe that nobody
    writes into, or one that gives more than MAXIMUM_PIPED_BYTES or takes longer than PIPED_S.
    """
    status = os.stat(path)
    if stat.S_ISREG(status.st_mode) or stat.S_ISDIR(status.st_mode):
        return open(path, "rb")
    if not stat.S_ISFIFO(status.st_mode):
        raise InputError("this is a device or a socket", str(path), "name a file")
    key = status.st_dev, status.st_ino
    if key not in _piped:  # opening it again would wait for a writer that never comes
        _piped[key] = _read_pipe(path)
    return io.BytesIO(_piped[key])


def _read_pipe(path: Path | str) -> bytes:
    """All that it gives. No single wait is longer than a moment, so that signals end it."""
    content, written, began = bytearray(), False, time.monotonic()
    with open(path, "rb", buffering=0, opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK)) as pipe:
        while True:
            piece = pipe.read(1 << 20)  # None while somebody has it open and writes nothing
            written = written or piece != b""
            if written and piece == b"":
                return bytes(content)
            content += piece or b""
            if len(content) > MAXIMUM_PIPED_BYTES:
                fault = f"the pipe gives more than {MAXIMUM_PIPED_BYTES >> 20} MiB"
            elif time.monotonic() - began > (PIPED_S if written else WRITER_S):
                fault = f"the pipe did not end within {PIPED_S:g} s" if written else "nobody writes into this pipe"
            else:
                time.sleep(0 if piece else 0.005)
                continue
            raise InputError(fault, str(path), "save it as a file first")


MAXIMUM_BYTES = 256 * 2**20  # of text that is kept, after decompression
MAXIMUM_STREAMED_BYTES = 2**29  # of text that is read piece by piece; published caches reach some 50 MB
MAXIMUM_LINE = 2**20  # characters
_CHUNK = 1 << 20
_LONGEST_NAME = 100  # characters of a file's name that its unfinished copy repeats
_GZIP_MAGIC = b"\x1f\x8b"
# a dotted key in TOML of more than 16 parts: parsing it takes the square of their number in time and memory
_DEEP_KEY = re.compile(r"""(?:(?<![\w\\-])(?:[\w-]++|"(?:[^"\\\n]|\\.)*+"|'[^'\n]*+')[ \t]*+\.[ \t]*+){16}""")
# endings that title_of leaves out
_FORMATS = frozenset(("csv", "gz", "json", "jsonl", "ndjson", "parquet", "part", "tsv", "txt", "log", "toml", "wrec"))


def read_text(path: Path, maximum_bytes: int = MAXIMUM_BYTES) -> str:
    """The text of a plain or gzipped UTF-8 file of at most `maximum_bytes` (decompressed).

    Raises InputError if the file is missing, unreadable, too large, damaged or not UTF-8.
    """
    return "".join(text_chunks(path, maximum_bytes))


def text_chunks(path: Path, maximum_bytes: int = MAXIMUM_STREAMED_BYTES) -> Iterator[str]:
    """The same text piece by piece, so that a file may be larger than what is kept of it. Raises as `read_text`."""
    decoder, lines, where = codecs.getincrementaldecoder("utf-8-sig")(), 0, str(path)
    for chunk in byte_chunks(path, maximum_bytes):
        if not lines and chunk[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):  # PowerShell's, of any output
            decoder = codecs.getincrementaldecoder("utf-16")()
        yield decode(decoder, chunk, lines, where)
        lines += chunk.count(b"\n")
    decode(decoder, b"", lines, where, final=True)


def byte_chunks(path: Path, maximum_bytes: int = MAXIMUM_STREAMED_BYTES) -> Iterator[bytes]:
    """The content of a plain or gzipped file piece by piece, whatever its encoding. Raises as `read_text`."""
    where = str(path)
    try:
        if not is_there(path):
            raise InputError("no such file", where, "check the path")
        if os.path.isdir(path):
            raise InputError("this is a folder", where, "name a file in it")
        with open_input(path) as raw:
            packed = raw.read(2) == _GZIP_MAGIC
            raw.seek(0)
            yield from _within(gzip.GzipFile(fileobj=raw) if packed else raw, maximum_bytes, where)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise InputError(f"the compressed data is damaged or cut off: {error}", where, "fetch the file again") from None
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror or error}", where, "check the path and its rights") from None
    except ValueError as error:  # a null byte in the path, say
        raise InputError(str(error), where, "check the path") from None


def text_lines(path: Path, maximum_bytes: int = MAXIMUM_STREAMED_BYTES) -> Iterator[str]:
    """The same text line by line, ends included. Raises as `read_text`, and for a line beyond MAXIMUM_LINE."""
    rest, number = "", 1
    for chunk in text_chunks(path, maximum_bytes):
        *lines, rest = (rest + chunk).split("\n")
        number += len(lines)
        if len(rest) > MAXIMUM_LINE:
            raise InputError(f"line {number} is longer than {MAXIMUM_LINE / 2**20:.0f} MiB", str(path), "remove it")
        for line in lines:
            yield f"{line}\n"
    if rest:
        yield rest


def _within(file: io.BufferedReader | io.BytesIO | gzip.GzipFile, maximum_bytes: int, where: str) -> Iterator[bytes]:
    """Read in chunks, so that a small file that unpacks to gigabytes is refused before it fills the memory.

    Of compressed data that is cut off, what could be unpacked comes before the error.
    """
    length, end = 0, False
    while not end:
        parts: list[bytes] = []
        fault: EOFError | zlib.error | None = None
        missing = _CHUNK
        try:
            while missing > 0 and (part := file.read1(missing)):
                parts.append(part)
                missing -= len(part)
        except (EOFError, zlib.error) as error:
            fault = error
        end = missing > 0
        length += _CHUNK - missing
        if length > maximum_bytes:
            size = f"{maximum_bytes / 2**20:.0f} MiB"
            raise InputError(f"the file holds more than {size} of text", where, "split it or remove what is not needed")
        if parts:
            yield b"".join(parts)
        if fault is not None:
            raise fault


def check_toml_keys(text: str, where: str) -> None:
    """Before a text is parsed as TOML: raises InputError for a key of more than 16 parts (`a.b.c`)."""
    if deep := _DEEP_KEY.search(text):
        line = text.count("\n", 0, deep.start()) + 1
        raise InputError(f"line {line}: a key of more than 16 parts", where, "nest tables less")


def title_of(path: Path) -> str:
    """A file's name without the endings that say its format: 'run.2' of run.2.csv.gz, since run.1 is another one."""
    name = path.name
    while (stem := name.rpartition("."))[0] and stem[2].lower() in _FORMATS:
        name = stem[0]
    return name


def digest_of(path: Path) -> str:
    """The SHA-256 of a file, or of the JSON files of a folder, in hexadecimal. Raises OSError."""
    if os.path.isdir(path):
        listing = "".join(f"{file.name} {digest_of(file)}\n" for file in sorted(path.glob("*.json")))
        return hashlib.sha256(listing.encode()).hexdigest()
    with open_input(path) as file:
        digest = hashlib.sha256()
        while chunk := file.read(_CHUNK):
            digest.update(chunk)
        return digest.hexdigest()


def decode(decoder: codecs.IncrementalDecoder, data: bytes, lines: int, where: str, *, final: bool = False) -> str:
    """The text of data that follows `lines` line ends. Raises InputError naming the line that is not UTF-8."""
    try:
        return decoder.decode(data, final)
    except UnicodeDecodeError as error:
        line = lines + error.object.count(b"\n", 0, error.start) + 1
        raise InputError(f"line {line} is not UTF-8 text", where, "save the file as UTF-8") from None


def free_name(path: Path) -> Path:
    """The path, or where something is there already the same with '-2', '-3' ... before its ending."""
    names = chain([path.name], (f"{path.stem}-{number}{path.suffix}" for number in count(2)))
    return next(free for name in names if not is_there(free := path.with_name(name)))


def refuse_taken(path: Path, *, force: bool = False) -> None:
    """Raises WattridgeError if a file lies that the user has not asked to be replaced."""
    if not force and os.path.isfile(path):
        raise WattridgeError("the file exists already", str(path), "--force replaces it; or choose another name")


def write_text(
    path: Path, text: str | bytes | Iterable[str], *, overwrite: bool = False, executable: bool = False
) -> Path:
    """Write UTF-8 text, pieces of it, or bytes, so that a reader sees the old file or the new one, never half of it.

    Returns the path. Raises WattridgeError if the file exists and `overwrite` is false, or the folder refuses it.
    """
    folder = path.parent
    rights = 0o777 if executable else 0o666  # less what the umask takes
    try:
        make_folder(folder)
        temporary = folder / f".{path.name[:_LONGEST_NAME]}.{secrets.token_hex(6)}"
        if is_private(path):
            rights &= 0o700
        handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_CLOEXEC", 0), rights)
        try:
            kept = {} if isinstance(text, bytes) else {"encoding": "utf-8", "errors": "replace", "newline": "\n"}
            with os.fdopen(handle, "wb" if isinstance(text, bytes) else "w", **kept) as file:  # type: ignore[call-overload]
                file.writelines([text] if isinstance(text, str | bytes) else text)
                file.flush()
                os.fsync(file.fileno())
            if overwrite:
                temporary.replace(path)
            else:
                os.link(temporary, path)  # fails where the name is taken, without a gap between check and write
                temporary.unlink()
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
    except FileExistsError:
        raise WattridgeError("the file exists already", str(path), "choose another name or folder") from None
    except OSError as error:
        raise WattridgeError(
            f"cannot be written: {error.strerror or error}", str(path), "choose a folder that you may write to"
        ) from None
    return path
