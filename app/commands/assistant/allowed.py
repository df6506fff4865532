"""Which files and boards an assistant may use: those of the folders named at the start, and nothing that runs.

A specification's kernel may be compiled for a GPU and launched there. What else a specification can name is refused:
programs, generators, functions of the host, services, meters, compiler options that could start a program, files and
and includes outside the folders. Settings of real boards are left out when a session is planned: it may set nothing.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from ...base.errors import InputError, PermissionRefused
from ...base.files import is_input
from ...base.paths import private_folder, resources
from ...engine.session.load import load_specification
from ...engine.specification.model import ARRAY_FILES, KernelSpec, Specification
from ...engine.specification.operator_kernels import kept_specification
from ...engine.specification.operator_shapes import is_operator, parse_operator

SUFFIXES: Final = (".toml", ".json")
MOST_BYTES: Final = 1 << 20  # of a specification or a source
MOST_FILES: Final = 200  # of a kernel, includes too
MOST_INCLUDES: Final = 1000  # that one of them names
_LANGUAGES: Final = ("CUDA", "OpenCL")
_SELECTOR: Final = re.compile(
    r"\d{1,3}|(?:GPU|AMD)-[0-9A-Fa-f-]{4,40}|amd:\d{1,3}|simulated:\w{1,40}|recorded:[\w-]{1,60}"
)
_OPTION: Final = re.compile(
    r"-O[0-3]|--?std=[\w+]+|-?-use_fast_math|-cl-[\w.=-]+|-lineinfo|--?ptxas-options=-O[0-3]"
    r"|--?maxrregcount=\d+|--?fmad=(true|false)|-D\w+(=[\w.+-]*)?|--?extra-device-vectorization|--?restrict"
)
_REFERENCE_FILE: Final = re.compile(r"[\w./ -]+\.(cu|cl|npy|npz|csv|bin|raw|dat)")
# Compilers differ in what joins two lines: GCC joins where blanks follow the backslash. Joined too often hides nothing.
_JOINED: Final = re.compile(r"(?:\\|\?\?/)\s*\n")
# Wherever it stands, also in a comment or a text: rather a directive too many than one that is hidden by either. Each
# looks at the rest of its line, in which another one may stand.
_DIRECTIVE: Final = re.compile(r"(?:#|%:|\?\?=)\s*(/\*|include_next\b|include\b|import\b|embed\b)(?=([^\n]{0,1000}))")
# What tells whether a file exists, or how its name begins, which a macro could complete; what only some compilers skip
_ASKS: Final = re.compile(
    r"(?i:has_(?:include|embed))|(?<!\w)(?:_|__|__h|__ha|__has|__has_\w{0,6})(?!\w)|[\x00-\x08\x0e-\x1f\x7f]"
)
_WORD: Final = re.compile(r"[^\W_]+(?:_+[^\W_]+)*")  # without the underscores around it
_ASSEMBLERS: Final = ({"asm"}, {"as", "m"}, {"a", "sm"}, {"a", "s", "m"})  # as a whole, or pasted of these
_INCLUDED: Final = re.compile(r"\s*(?:\"([^\"]+)\"|<([^>]+)>)\s*(?:/\*[^*]*\*/\s*|//.*)*")
_PLAIN: Final = re.compile(r"(?:(?!%:|\?\?)[^#\\\x00-\x1f\x7f\u2028\u2029])*")  # cannot become a directive of its own
_REMEDY: Final = "the user can run it: wattridge tune"


class Folders:
    """The folders named at the start."""

    def __init__(self, folders: Sequence[Path]) -> None:
        """Raises InputError for one that is no folder."""
        self.paths = tuple(_real(folder) for folder in folders)
        for given, path in zip(folders, self.paths, strict=True):
            if not path.is_dir():
                raise InputError("this is not a folder", str(given), "name a folder of specifications")

    def file(self, text: str) -> Path:
        """A file in one of them, its links followed. Relative names are tried in each. Raises InputError."""
        if "\0" in text:
            raise InputError("a name of a file has no NUL", "specification", "name a file")
        for candidate in [Path(text)] if os.path.isabs(text) else [folder / text for folder in self.paths]:
            real = _real(candidate)
            if self.hold(real) and os.path.isfile(real):
                return real
        raise InputError(f"there is no file '{text}' in the folders", "specification", "list_specifications names them")

    def hold(self, real: Path) -> bool:
        """Whether a path, whose links were followed, lies in one of them."""
        return any(real.is_relative_to(folder) for folder in self.paths)

    def specifications(self, most: int) -> Iterator[Path]:
        """What may be specifications, in order of their names: at most so many, hidden folders left out."""
        left, looked = most, 100 * most
        for top in self.paths:
            for parent, folders, files in os.walk(top):
                folders[:] = sorted(name for name in folders if not name.startswith("."))
                for name in sorted(files):
                    looked -= 1
                    if left <= 0 or looked <= 0:
                        return
                    if name.endswith(SUFFIXES):
                        left -= 1
                        yield Path(parent, name)


def load_allowed(text: str, folders: Folders, *, amd: bool = False) -> Specification:
    """A specification in the folders, or of an operator, that runs nothing but kernels. Raises WattridgeError.

    `amd` where it is to run on a real board of AMD's, whose compiler assembles for itself.
    """
    if is_operator(text):
        path = kept_specification(parse_operator(text))
    else:
        path = folders.file(text)
        if path.suffix not in SUFFIXES:
            raise InputError("this is no specification", path.name, f"a file that ends with {' or '.join(SUFFIXES)}")
        if path.stat().st_size > MOST_BYTES:
            raise InputError(f"larger than {MOST_BYTES} bytes", path.name, "name a smaller file")
    specification = load_specification(path)
    if why := why_refused(specification, folders, amd=amd):
        raise PermissionRefused(f"an assistant may not run this: {why}", path.name, _REMEDY)
    return specification


def why_refused(specification: Specification, folders: Folders, *, amd: bool = False) -> str:
    """Why an assistant may not run a specification; empty if it may."""
    kernel = specification.kernel
    if specification.command is not None:
        return "it runs a program ([command])"
    if specification.service is not None:
        return "it runs a service ([service])"
    if kernel is None:
        return "it has no [kernel]"
    if specification.meters:
        return "it names power meters, which may be programs"
    if kernel.language not in _LANGUAGES:
        return f"its kernel is a function of the host ({kernel.language})"
    if kernel.generator:
        return "it has a generator, which is a program"
    if kernel.verify is not None and kernel.verify.command:
        return "it has a verify.command, which is a program"
    if kernel.compiler:
        return "it names a compiler"
    for option in kernel.compiler_options:
        if not _OPTION.fullmatch(option):
            return f"the compiler option {option} is not among those that are known to be harmless"
    if not all(_PLAIN.fullmatch(text) and not _ASKS.search(text) for text in _texts(specification, kernel)):
        return "a text of it could become a line of the kernel's source"
    clang = amd or kernel.language == "OpenCL"
    return _why_files_refused(kernel, specification.path.parent, folders, clang=clang)


def check_board(selector: str) -> str:
    """The selector of a board that an assistant may use. Raises InputError."""
    if not _SELECTOR.fullmatch(selector):
        remedy = "an index, a UUID, amd:INDEX, simulated:NAME or recorded:NAME, as list_boards shows them"
        raise InputError("this names no board that can be used here", "gpu", remedy)
    return selector


# --- inside -----------------------------------------------------------------------------------------------------------


def _texts(specification: Specification, kernel: KernelSpec) -> Iterator[str]:
    """What becomes part of the text that is compiled."""
    yield from (kernel.name, kernel.template, *map(str, kernel.sources), *map(str, kernel.include))
    yield from kernel.compiler_options
    for value in specification.constants.values():
        yield str(value)
    for values in specification.parameters.values():
        yield from (values,) if isinstance(values, str) else map(str, values)


def _why_files_refused(kernel: KernelSpec, base: Path, folders: Folders, *, clang: bool) -> str:
    """Every file that compiling or running would read lies in the folders, or comes with the program."""
    shipped = (resources().resolve(), _real(private_folder("operators")))

    def holds(path: Path) -> bool:
        real = _real(path)
        return folders.hold(real) or any(real.is_relative_to(folder) for folder in shipped)

    fills = [argument.fill for argument in kernel.arguments if argument.fill.endswith(ARRAY_FILES)]
    verify = kernel.verify
    texts = [] if verify is None else [verify.reference, *verify.references.values()]
    references = [base / text for text in texts if _REFERENCE_FILE.fullmatch(text)]
    sources = [*kernel.sources, *(path for path in references if path.suffix in (".cu", ".cl"))]
    for path in (*sources, *references, *kernel.include, *(base / fill for fill in fills)):
        if not holds(path):
            return f"{path.name} is not in the folders"
    # in the order of the compiler, for which the text that it is given lies in the working directory
    searched = [*kernel.include, *(path.parent for path in sources), Path.cwd()]
    return _why_includes_refused(sources, searched, holds, clang=clang)


def _why_includes_refused(
    sources: Sequence[Path], searched: Sequence[Path], holds: Callable[[Path], bool], *, clang: bool
) -> str:
    """Every file that sources include, directly or not, can be found, and `holds` is true of it."""
    waiting, seen = list(sources), set()
    while waiting:
        path = _real(waiting.pop())
        if path in seen:
            continue
        seen.add(path)
        if len(seen) > MOST_FILES:
            return f"it includes more than {MOST_FILES} files"
        if not os.path.isfile(path) or path.stat().st_size > MOST_BYTES:
            return f"{path.name} is no file, or larger than {MOST_BYTES} bytes"
        words = set(_WORD.findall(_joined(path))) if clang else set()
        if any(pieces <= words for pieces in _ASSEMBLERS):  # clang's has .incbin, which reads a file
            return f"{path.name} has statements of an assembler (asm), or the pieces of that word"
        for name in _includes(path):
            if name is None or os.path.isabs(name) or ".." in Path(name).parts:
                return f"{path.name} includes a file by a macro, by .. or from the top of the disk, or asks for one"
            there = [place / name for place in (path.parent, *searched) if is_input(place / name)]
            if not all(holds(value) for value in there):
                return f"{name}, which {path.name} includes, is not in the folders"
            waiting += there
    return ""


def _includes(path: Path) -> Iterator[str | None]:
    """The names of the files that a source includes; None for one that only the preprocessor would know."""
    text = _joined(path)
    if _ASKS.search(text) or text.count("include") > MOST_INCLUDES:
        yield None
    for directive in _DIRECTIVE.finditer(text):
        named = _INCLUDED.fullmatch(directive[2])
        yield None if named is None or not directive[1].startswith("include") else named[1] or named[2]


def _joined(path: Path) -> str:
    return _JOINED.sub("", path.read_text(encoding="utf-8", errors="replace"))


def _real(path: Path) -> Path:
    return Path(os.path.realpath(path))


def json_path(path: Path, folders: Folders) -> dict[str, Any]:
    """A file as the answers name it: its name in the folder, and the folder."""
    top = next((folder for folder in folders.paths if path.is_relative_to(folder)), path.parent)
    return {"specification": str(path.relative_to(top)), "folder": str(top)}
