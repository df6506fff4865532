"""Watches what this process runs on GPUs, by CUPTI's activity records, and writes it to a file as it happens.

It runs in the user's own Python, of any version from 3.9 on, and needs nothing of Wattridge: NumPy, and the CUPTI
library that PyTorch brings, or the CUDA toolkit, or a package. No rights are needed, since no counters are read.

The file is a sequence of chunks: four letters, a length, so many bytes. What a process wrote before it is killed can be
read. Records are those of `cupti_activity.h`: the fields that are read have had the same places since CUDA 12.0, and
the library itself tells how long records are.
"""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import functools
import glob
import importlib.util
import json
import os
import re
import shutil
import struct
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

CUDA_USERS = {"torch", "cupy", "cuda.bindings", "pycuda", "numba", "jaxlib", "tensorflow", "triton", "warp"}
OLDEST, NEWEST = 18, 139_999  # of cuptiGetVersion: CUDA 12.0 to 13
BUFFER_BYTES = 4 << 20
FLUSH_S, STOP_S = 0.5, 5.0
MOST_RECORDS = 8_000_000  # of one process: two for a launch
MOST_TRACES = 8  # of PyTorch's profiler that are kept
KERNEL, COPY, SET = range(3)  # as the rows of slices name them

_MEMCPY, _MEMSET, _DRIVER, _RUNTIME, _KERNEL, _MARKER, _MEMCPY2 = 1, 2, 4, 5, 10, 12, 22  # CUPTI_ACTIVITY_KIND_*
_LAUNCHES = re.compile(r"cuda(Launch|GraphLaunch|Memcpy|Memset)|cu(Launch|GraphLaunch)")  # calls that are recorded
_DIRECTIONS = ("", "HtoD", "DtoH", "HtoA", "AtoH", "AtoA", "AtoD", "DtoA", "DtoD", "HtoH", "PtoP")
_COUNTED = re.compile(r"\s*#\s*\d+$")  # ProfilerStep#17
_POINTER, _SIZE = ctypes.POINTER(ctypes.c_void_p), ctypes.POINTER(ctypes.c_size_t)
_REQUESTED = ctypes.CFUNCTYPE(None, _POINTER, _SIZE, _SIZE)
_COMPLETED = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_uint32, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_size_t)


class Problem(Exception):
    """Why this process cannot be watched."""


def find_library() -> str:
    """Return the path of the CUPTI library that is loaded, else of one that is installed. Raises Problem."""
    with contextlib.suppress(OSError), open("/proc/self/maps", encoding="utf-8", errors="replace") as lines:
        for line in lines:
            if "/libcupti.so" in line:
                return line[line.index("/") :].strip()
    places = [os.path.join(entry, "nvidia", "*", "lib") for entry in sys.path]
    for home in (os.environ.get("CUDA_HOME", ""), "/usr/local/cuda"):
        places += [os.path.join(home, "extras", "CUPTI", "lib64"), os.path.join(home, "lib64")] if home else []
    for place in places:
        for path in sorted(glob.glob(os.path.join(place, "libcupti.so.1[23]")), reverse=True):
            return path
    raise Problem("CUPTI is not found")


class Watcher:
    """The activity of this process on GPUs from now on, until `stop`; it ends by itself with the process."""

    def __init__(self, folder: str) -> None:
        try:
            import numpy
        except ImportError:
            raise Problem("NumPy is not found") from None
        self._np: Any = numpy
        self._pid = os.getpid()
        self._folder = folder
        self._lock = threading.RLock()  # of the file and what belongs to it; never held while CUPTI is called
        self._switching = threading.Lock()
        self._taking = threading.Lock()
        self._numbers: dict[str, int] = {}  # of names
        self._named: dict[int, int] = {}  # the numbers of the names at addresses
        self._buffers: dict[int, Any] = {}  # by address
        self._spare: list[int] = []  # the addresses of those that can be used again: none is freed, as CUPTI has them
        self._full: list[tuple[int, int]] = []  # address and length of those that have come back
        self._filled = threading.Event()
        self._sizes: dict[int, int] = {}  # of records by kind, in words of 8 bytes
        self._open_marks: dict[int, tuple[int, int]] = {}
        self._local = threading.local()
        self._host: list[int] = []  # rows of ranges that ended
        self._records = 0
        self._watching = self._profiled = False
        self._traces = 0
        self._stopped = threading.Event()
        self._since_ns = 0
        path = find_library()
        os.environ.setdefault("NVTX_INJECTION64_PATH", path)  # NVTX looks at its first call
        self._cupti = ctypes.CDLL(path)
        version = ctypes.c_uint32()
        self._call("cuptiGetVersion", ctypes.byref(version))
        if not OLDEST <= version.value <= NEWEST:
            raise Problem(f"version {version.value} of CUPTI is not known, {path}")
        self._demangle: Any = None
        with contextlib.suppress(OSError, AttributeError):
            self._demangle = getattr(ctypes.CDLL("libstdc++.so.6"), "__cxa_demangle")
            self._demangle.restype = ctypes.c_void_p
        self._callbacks = _REQUESTED(self._request), _COMPLETED(self._complete)
        with contextlib.suppress(Problem):
            self._call("cuptiSetThreadIdType", 1)  # those of the system, as Python knows them
        self._call("cuptiActivityRegisterCallbacks", *self._callbacks)
        self._launches = list(self._calls_that_launch())
        self._file = open(os.path.join(folder, f"{self._pid}.watched"), "ab", buffering=0)  # noqa: SIM115
        about = {"pid": self._pid, "arguments": sys.argv, "library": path, "version": version.value}
        self._write(b"META", json.dumps(about).encode())
        self.resume()
        self._steering = threading.Thread(target=self._steer, name="wattridge watcher", daemon=True)
        self._steering.start()
        atexit.register(self.stop)
        os.register_at_fork(after_in_child=self._forked)

    def resume(self) -> None:
        """Watch (again)."""
        with self._switching:
            if self._watching or self._profiled or self._stopped.is_set():
                return
            self._switch("Enable", (_KERNEL, _MEMCPY, _MEMSET, _MEMCPY2))
            with contextlib.suppress(Problem):
                self._call("cuptiActivityEnable", _MARKER)
            self._since_ns, self._watching = self.now_ns(), True

    def pause(self) -> None:
        """Stop watching for a while; what was watched until now is written.

        CUPTI's own thread crashes at times where kinds are switched off while something runs, so this waits for the
        board first, and is for the thread that launches.
        """
        with self._switching:
            if not self._watching:
                return
            self._watching = False
            with contextlib.suppress(OSError, AttributeError):
                ctypes.CDLL("libcuda.so.1").cuCtxSynchronize()
            until_ns = self.now_ns()
            with contextlib.suppress(Problem):
                self._switch("Disable", (_KERNEL, _MEMCPY, _MEMSET, _MEMCPY2, _MARKER))
                self._flush(1)
            self._rows(b"SPAN", [self._since_ns, until_ns])

    def stop(self) -> None:
        """Write what is left and close the file."""
        if self._stopped.is_set():
            return
        self.pause()
        self._stopped.set()
        self._filled.set()
        self._steering.join(STOP_S)
        self._flush(1)
        self._write_records()
        self._write_ranges()
        dropped = ctypes.c_size_t()
        with contextlib.suppress(Problem):
            self._call("cuptiActivityGetNumDroppedRecords", None, 0, ctypes.byref(dropped))
        self._write(b"DONE", json.dumps({"dropped": dropped.value, "most": self._records > MOST_RECORDS}).encode())
        with self._lock:
            self._file.close()

    def _forked(self) -> None:
        """In a fork of the process that is watched, which has neither its threads nor its board: do nothing."""
        self._stopped.set()
        self.begin = self.end = self.pause = self.resume = lambda *_: None  # type: ignore[method-assign, assignment]

    def _steer(self) -> None:
        """Write what comes, on a thread of its own: CUPTI calls in the midst of launches, and is not kept waiting."""
        named = False
        while not self._stopped.is_set():
            self._filled.wait(FLUSH_S)
            self._filled.clear()
            named = named or self._name_boards()
            with self._switching:
                if self._watching:
                    self._flush(0)
            self._write_records()
            self._write_ranges()

    def _switch(self, word: str, kinds: Sequence[int]) -> None:
        """Enable or disable kinds, and the calls that launch something, each: those switched off by kind stay off."""
        for api, number in self._launches:
            self._call(f"cuptiActivityEnable{api}Api", number, int(word == "Enable"))
        for kind in kinds:
            self._call(f"cuptiActivity{word}", kind)

    def _calls_that_launch(self) -> Iterator[tuple[str, int]]:
        name = ctypes.c_char_p()
        for domain, api in ((1, "Driver"), (2, "Runtime")):
            for number in range(1, 1000):
                known = self._cupti.cuptiGetCallbackName(domain, number, ctypes.byref(name)) == 0
                if known and _LAUNCHES.match((name.value or b"").decode(errors="replace")):
                    yield api, number

    def _name_boards(self) -> bool:
        """Write which boards this process sees, as soon as CUDA is initialised; asking does not initialise it."""
        try:
            driver, count = ctypes.CDLL("libcuda.so.1"), ctypes.c_int()
            if driver.cuDeviceGetCount(ctypes.byref(count)) != 0:
                return False
            boards = []
            for number in range(count.value):
                device, name, uuid = ctypes.c_int(), ctypes.create_string_buffer(96), ctypes.create_string_buffer(16)
                driver.cuDeviceGet(ctypes.byref(device), number)
                driver.cuDeviceGetName(name, 96, device)
                driver.cuDeviceGetUuid(uuid, device)
                boards.append([number, name.value.decode(errors="replace"), uuid.raw.hex()])
        except (OSError, AttributeError):
            return True
        self._write(b"BRDS", json.dumps(boards).encode())
        return True

    # --- ranges of the host ---------------------------------------------------------------------------------------

    def now_ns(self) -> int:
        """Return the time on the clock of the records."""
        value = ctypes.c_uint64()
        self._cupti.cuptiGetTimestamp(ctypes.byref(value))
        return value.value

    def begin(self, name: str) -> None:
        """Open a range on this thread."""
        self._local.__dict__.setdefault("open", []).append((name, self.now_ns()))

    def end(self) -> None:
        """Close the innermost range of this thread."""
        if self._local.__dict__.get("open"):
            name, start_ns = self._local.open.pop()
            self._ended(threading.get_native_id(), self._number(name), start_ns, self.now_ns())

    def _ended(self, thread: int, name: int, start_ns: int, end_ns: int) -> None:
        with self._lock:
            self._host += (thread, name, start_ns, end_ns - start_ns, -1)

    def _write_ranges(self) -> None:
        with self._lock:
            rows, self._host = self._host, []
            if rows:
                self._rows(b"HOST", rows)

    # --- PyTorch's own profiler takes the records for itself --------------------------------------------------------

    def profiler_begins(self) -> None:
        """Leave the records to PyTorch."""
        self.pause()
        self._profiled = True

    def profiler_ended(self) -> None:
        """Take them again."""
        self._profiled = False
        with contextlib.suppress(Problem):
            self._call("cuptiActivityRegisterCallbacks", *self._callbacks)
            self.resume()

    def trace_path(self) -> str:
        """Return where a trace of PyTorch's profiler is to be written. Raises Problem where enough were."""
        self._traces += 1
        if self._traces > MOST_TRACES:
            raise Problem("PyTorch's profiler ran often")
        return os.path.join(self._folder, f"{self._pid}-{time.time_ns()}.trace.json")

    # --- records ----------------------------------------------------------------------------------------------------

    def _request(self, buffer: Any, size: Any, most: Any) -> None:
        """Give CUPTI a buffer: in the midst of a launch, so that nothing else is done."""
        try:
            address = self._spare.pop()
        except IndexError:
            memory = ctypes.create_string_buffer(BUFFER_BYTES + 8)
            address = (ctypes.addressof(memory) + 7) & ~7
            self._buffers[address] = memory
        buffer[0], size[0], most[0] = address, BUFFER_BYTES, 0

    def _complete(self, context: Any, stream: int, address: int, size: int, valid: int) -> None:
        self._full.append((address, valid))
        if len(self._full) > 1:
            self._filled.set()

    def _write_records(self) -> None:
        with self._taking:
            while self._full:
                address, valid = self._full.pop(0)
                try:
                    if valid and self._records <= MOST_RECORDS and not self._file.closed:
                        self._take(address, valid)
                except Exception as error:  # noqa: BLE001 - the program runs, whatever is wrong here
                    self._write(b"FAIL", repr(error).encode())
                self._spare.append(address)

    def _take(self, address: int, valid: int) -> None:
        """Sort the records of a buffer by kind, and write what is needed of them."""
        np, end = self._np, valid >> 3  # in words of 8 bytes
        words = np.frombuffer((ctypes.c_char * valid).from_address(address), np.uint32, 2 * end)
        wide = words.view(np.uint64)
        found: dict[int, list[Any]] = {}
        at = 0
        while at < end:
            kinds, places = self._next_kinds(words, at, end, lambda: self._learn(address, valid))
            stride = places[-1] - at
            times = self._how_often(words, kinds, places, max(1, (end - at) // stride))
            for number, kind in enumerate(kinds):
                found.setdefault(kind, []).append(np.arange(times) * stride + places[number])
            at += times * stride
        for kind, rows in found.items():
            place = np.sort(np.concatenate(rows))
            self._records += len(place)
            if kind in (_RUNTIME, _DRIVER):
                self._columns(b"LNCH", words[2 * place + 8], words[2 * place + 7], wide[place + 1])
            elif kind == _MARKER:
                for row in place.tolist():
                    self._mark(words[2 * row : 2 * row + 8].tolist(), wide[row : row + 6].tolist())
            elif kind == _KERNEL:
                pointers, which = np.unique(wide[place + 13], return_inverse=True)
                names = np.array([self._number_at(pointer) for pointer in pointers.tolist()])[which.ravel()]
                self._slices(KERNEL, place, words, wide, names, (10, 12, 23), None)
            elif kind == _MEMSET:
                self._slices(SET, place, words, wide, self._number("Memset (Device)"), (8, 10, 11), wide[place + 1])
            elif kind in (_MEMCPY, _MEMCPY2):
                directions = [_DIRECTIONS[min(one, 10)] for one in (words[2 * place + 1] & 0xFF).tolist()]
                names = np.array([self._number("Memcpy " + direction) for direction in directions])
                fields = (8, 10, 11 if kind == _MEMCPY else 15)
                self._slices(COPY, place, words, wide, names, fields, wide[place + 1])

    def _next_kinds(self, words: Any, at: int, end: int, learn: Callable[[], None]) -> tuple[list[int], list[int]]:
        """The kinds of records from a place on until they recur, 8 at most; their places and that of the next one."""
        kinds: list[int] = []
        places = [at]
        while places[-1] < end and len(kinds) < 8:
            kind = int(words[2 * places[-1]])
            if kind not in self._sizes:
                learn()
            kinds.append(kind)
            places.append(places[-1] + self._sizes[kind])
        period = next(each for each in range(1, len(kinds) + 1) if kinds[each:] == kinds[: len(kinds) - each])
        return kinds[:period], places[: period + 1]

    def _how_often(self, words: Any, kinds: Sequence[int], places: Sequence[int], most: int) -> int:
        """Return how often these kinds recur in a row; no step of Python for each, as the program waits for those."""
        stride, look = places[-1] - places[0], min(64, most)
        while True:
            same = self._np.ones(look, bool)
            for number, kind in enumerate(kinds):
                same &= words[2 * places[number] :: 2 * stride][:look] == kind
            if not same.all() or look == most:
                return max(1, most if same.all() else int(same.argmin()))
            look = min(4 * look, most)

    def _slices(
        self, kind: int, place: Any, words: Any, wide: Any, names: Any, fields: Sequence[int], moved: Any
    ) -> None:
        """Write what ran; `fields` are the places of device, stream and correlation, in words of 4 bytes."""
        device, stream, correlation = (words[2 * place + field] for field in fields)
        start, end = wide[place + 2], wide[place + 3]
        done = (start > 0) & (end >= start)
        columns = (kind, device, stream, names, start, end - start, 0 if moved is None else moved, correlation, -1)
        self._columns(b"SLCE", *columns, where=done)

    def _mark(self, words: Sequence[int], wide: Sequence[int]) -> None:
        """A range of NVTX begins or ends: flags 2 and 4."""
        flags, number, thread = words[1], words[4], words[7]
        if flags & 2 and wide[5]:
            self._open_marks[number] = self._number_at(wide[5]), wide[1]
        elif flags & 4 and number in self._open_marks:
            name, start_ns = self._open_marks.pop(number)
            self._ended(thread, name, start_ns, wide[1])

    def _learn(self, address: int, valid: int) -> None:
        """Ask the library for the places of a buffer's records, and so for the sizes of its kinds."""
        record, before = ctypes.c_void_p(None), 0
        given = ctypes.c_void_p(address), ctypes.c_size_t(valid), ctypes.byref(record)
        while self._cupti.cuptiActivityGetNextRecord(*given) == 0 and record.value:
            if before:
                self._sizes[ctypes.c_uint32.from_address(before).value] = (record.value - before) >> 3
            before = record.value
        if before:
            self._sizes[ctypes.c_uint32.from_address(before).value] = (address + valid - before) >> 3

    def _number_at(self, pointer: int) -> int:
        """The number of the name at an address, which stays where it is."""
        if pointer not in self._named:
            raw = ctypes.string_at(pointer) if pointer else b"?"
            if self._demangle is not None and raw.startswith(b"_Z"):
                result = self._demangle(raw, None, None, None)
                raw = ctypes.string_at(result) if result else raw  # not freed: each name comes once
            self._named[pointer] = self._number(raw.decode(errors="replace"))
        return self._named[pointer]

    def _number(self, name: str) -> int:
        """The number of a name, which is written when it is new."""
        name = _COUNTED.sub("", name) or name
        with self._lock:
            if name not in self._numbers:
                self._numbers[name] = len(self._numbers)
                self._write(b"NAME", json.dumps(name).encode())
            return self._numbers[name]

    def _columns(self, tag: bytes, *columns: Any, where: Any = None) -> None:
        table = self._np.stack(self._np.broadcast_arrays(*(self._np.asarray(one).astype("i8") for one in columns)), 1)
        self._rows(tag, table if where is None else table[where])

    def _rows(self, tag: bytes, rows: Any) -> None:
        self._write(tag, self._np.asarray(rows, self._np.int64).tobytes())

    def _write(self, tag: bytes, content: bytes) -> None:
        with self._lock:
            if self._file.closed:
                return
            chunk = struct.pack("<4sI", tag, len(content)) + content
            try:
                whole = self._file.write(chunk) == len(chunk)
            except OSError:
                whole = False
            if not whole:  # the disk is full: what is written can be read, and watching ends
                self._file.close()

    def _flush(self, flag: int) -> None:
        with contextlib.suppress(Problem):
            self._call("cuptiActivityFlushAll", flag)

    def _call(self, name: str, *given: Any) -> None:
        """Call CUPTI. Raises Problem with its words."""
        try:
            status = getattr(self._cupti, name)(*given)
        except AttributeError:
            raise Problem(f"CUPTI has no {name}") from None
        if status != 0:
            text = ctypes.c_char_p()
            self._cupti.cuptiGetResultString(status, ctypes.byref(text))
            raise Problem(f"{name}: {(text.value or b'error').decode()} ({status})")


# --- how it comes into a program ------------------------------------------------------------------------------------


def watch_imports(folder: str) -> None:
    """Watch this process from when it has imported something that uses CUDA."""
    sys.meta_path.insert(0, _Finder(folder))


class _Finder:
    """Finds the modules that use CUDA as everybody does, and starts the watcher behind them."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._watcher: Watcher | None = None
        self._failed = False
        self._asking = False

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        if name not in CUDA_USERS or self._asking:
            return None
        self._asking = True
        try:
            spec: Any = importlib.util.find_spec(name)
        finally:
            self._asking = False
        if spec is not None and spec.loader is not None:
            spec.loader = _Loader(spec.loader, self._imported)
        return spec

    def _imported(self, name: str) -> None:
        if self._watcher is None and not self._failed:
            try:
                self._watcher = Watcher(self._folder)
            except (Problem, OSError, AttributeError) as error:
                self._failed = True
                about = {"pid": os.getpid(), "python": sys.executable, "problem": str(error)}
                with open(os.path.join(self._folder, f"{os.getpid()}.failed"), "w", encoding="utf-8") as file:
                    json.dump(about, file)
        if name == "torch" and self._watcher is not None:
            hook_pytorch(self._watcher, sys.modules["torch"])


class _Loader:
    """The module's own loader, which is in its place again once the module is made."""

    def __init__(self, loader: Any, then: Callable[[str], None]) -> None:
        self._loader, self._then = loader, then

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loader, name)

    def create_module(self, spec: Any) -> Any:
        return self._loader.create_module(spec)

    def exec_module(self, module: Any) -> None:
        module.__loader__ = module.__spec__.loader = self._loader
        self._loader.exec_module(module)
        self._then(module.__name__)


def hook_pytorch(watcher: Watcher, torch: Any) -> None:
    """Make ranges of `record_function`, of optimizers and data loaders, which use it, and of the backward pass."""
    profiler = torch.autograd.profiler
    _around(profiler.record_function, "__enter__", lambda one, *_: watcher.begin(one.name), None)
    _around(profiler.record_function, "__exit__", None, lambda *_: watcher.end())
    _around(torch.autograd, "backward", lambda *_: watcher.begin("backward"), lambda *_: watcher.end())

    def begins(one: Any, *_: Any) -> None:
        if getattr(one, "use_device", "cuda") == "cuda":
            watcher.profiler_begins()

    def ended(one: Any, *_: Any) -> None:
        with contextlib.suppress(Exception):  # a profiler without results, or traces enough
            path = watcher.trace_path()
            export(one, path)
            one.wattridge_trace = path
        watcher.profiler_ended()

    def export_again(one: Any, path: str) -> Any:  # PyTorch exports results only once
        kept = getattr(one, "wattridge_trace", None)
        return export(one, path) if kept is None else shutil.copyfile(kept, path)

    export = profiler.profile.export_chrome_trace
    profiler.profile.export_chrome_trace = functools.wraps(export)(export_again)
    _around(profiler.profile, "_prepare_trace", begins, None)
    _around(profiler.profile, "__exit__", None, ended)


def _around(owner: Any, name: str, before: Callable[..., None] | None, after: Callable[..., None] | None) -> None:
    """Replace a function by one that calls `before` and `after` it as well, with its first argument."""
    own = getattr(owner, name, None)
    if own is None:
        return

    @functools.wraps(own)
    def call(*given: Any, **named: Any) -> Any:
        if before is not None:
            before(*given[:1])
        try:
            return own(*given, **named)
        finally:
            if after is not None:
                after(*given[:1])

    setattr(owner, name, call)
