"""While a library loads, the other threads of the process go on."""

from __future__ import annotations

import ctypes
import ctypes.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from app.base.installation import load_library

# Its initialiser waits until another thread has made a file, and notes whether one did.
SLOW = """
#include <unistd.h>
extern "C" {
int alone = 1;
__attribute__((constructor)) void wait_for_another() {
    for (int step = 0; step < 1000 && alone; ++step) {
        alone = access(FILE, F_OK);
        if (alone) usleep(10000);
    }
}
void *PyInit_slow() { return 0; }
}
"""
# A module without contents: what is looked at is the library that it was loaded from.
ON_A_THREAD = """
import ctypes, sys, threading
from pathlib import Path
from app.base.installation import import_beside_the_main_thread, load_library

def load():
    try:
        if sys.argv[1] == "module":
            import slow
        else:
            load_library(sys.argv[2])
    except SystemError:
        pass

import_beside_the_main_thread()
loading = threading.Thread(target=load)
loading.start()
while loading.is_alive() and sys.argv[2] not in Path("/proc/self/maps").read_text():
    pass  # until it is being loaded, or was
Path(sys.argv[3]).touch()
loading.join()
print(ctypes.c_int.in_dll(ctypes.CDLL(sys.argv[2]), "alone").value)
"""

pytestmark = pytest.mark.skipif(sys.platform != "linux" or shutil.which("c++") is None, reason="needs c++, and /proc")


@pytest.mark.parametrize("how", ["library", "module"])
def test_others_run_while_a_library_is_initialised(tmp_path: Path, how: str) -> None:
    library, flag = tmp_path / "slow.so", tmp_path / "flag"
    source = SLOW.replace("FILE", f'"{flag}"')
    command = ["c++", "-shared", "-fPIC", "-x", "c++", "-o", str(library), "-"]
    subprocess.run(command, input=source, text=True, check=True)
    done = subprocess.run(
        [sys.executable, "-c", ON_A_THREAD, how, str(library), str(flag)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join((str(Path(__file__).parents[2]), str(tmp_path)))},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split() == ["0"]


# Python says which files it opens, before the module's own code runs: the system's loader is not asked by way of it.
OPENED = """
import sys, threading
from app.base.installation import import_beside_the_main_thread

opened = []
sys.addaudithook(lambda event, words: opened.append(words[0]) if event == "open" else None)
import_beside_the_main_thread()

def load():
    try:
        import module_without_contents
    except (ImportError, SystemError):
        pass

loading = threading.Thread(target=load)
loading.start()
loading.join()
print(sys.argv[1] in opened)
"""


def test_a_module_is_read_before_it_is_loaded(tmp_path: Path) -> None:
    module = tmp_path / "module_without_contents.so"
    command = ["c++", "-shared", "-fPIC", "-x", "c++", "-o", str(module), "-"]
    subprocess.run(command, input="", text=True, check=True)
    done = subprocess.run(
        [sys.executable, "-c", OPENED, str(module)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join((str(Path(__file__).parents[2]), str(tmp_path)))},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split() == ["True"]


def test_what_does_not_load_says_why(tmp_path: Path) -> None:
    missing = tmp_path / "missing.so"
    with pytest.raises(OSError, match=r"missing\.so"):
        load_library(str(missing))
    assert isinstance(load_library(ctypes.util.find_library("c") or "libc.so.6"), ctypes.CDLL)
