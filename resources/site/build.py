"""The site: guide, reference and gallery, from what lies in the repository.

    pip install -r resources/site/requirements.txt
    python resources/site/build.py OUT [--url https://example.org/wattridge/]

OUT gets a folder for this version, a list of the versions that lie there (`switcher.json`, which every page reads) and
a page that leads to the newest. It fails on any warning of Sphinx, and on any link that leads nowhere within the site.
`--url` is where OUT will be served: the list is asked for by its whole address.
"""

from __future__ import annotations

import argparse
import importlib
import inspect
import json
import re
import shutil
import sys
import tempfile
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

ROOT = Path(__file__).resolve().parents[2]
SITE, RESOURCES = ROOT / "resources" / "site", ROOT / "resources"
TABLES = ROOT / "tests" / "benchmarks"
MODULES = ("triton", "helion", "strategies", "meters", "observers")
RESULTS = {  # class -> the module that it is in
    "Tuned": "scripting.tuned",
    "Measuring": "scripting.measuring",
    "Profiling": "scripting.profiling",
    "Boards": "scripting.calls",
    "Fitted": "scripting.calls",
    "Rooflines": "scripting.calls",
    "SessionAnalysis": "scripting.calls",
    "LogAnalysis": "scripting.calls",
    "Exported": "scripting.calls",
}
STATIC = """
html[data-theme="dark"] .bd-content img:not(.only-dark, .dark-light) { filter: none }
figcaption, figcaption .caption-text { font-weight: 400 } h1, h2 { overflow-wrap: anywhere }
.bd-main .bd-content .bd-article-container { max-width: 72em } .bd-page-width { max-width: 100em }
.bd-article table { font-size: .85rem }
figure img { border: 1px solid var(--pst-color-border); border-radius: 6px }
.bd-article td { vertical-align: top }
"""
CAPTIONS = {  # picture -> what it shows
    "watch-h200-dark": "Watch: a real H200 under matrix products at its power limit, then copies in memory",
    "tune-h200-light": "Tune: 20 configurations of SGEMM, measured on a real H200 in 9 s",
    "front-dark": "Tune: a session on the simulated A100, where clocks are searched too",
    "analysis-dark": "Understand: what the parameters do, on the simulated A100",
    "model-light": "Understand: the frequency model, on the simulated A100",
    "roofline-dark": "Understand: the energy roofline",
    "compare-light": "Understand: sessions side by side",
    "program-dark": "Program: where the joules of a training step go",
    "boards-dark": "Watch: several boards, simulated",
    "control-dark": "Control: clocks and limits, on a simulated board",
    "home-light": "Home: what do you want to make efficient?",
    "sessions-light": "Library: the sessions of this machine",
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path, help="where the site is written")
    parser.add_argument("--url", default="/", help="where it will be served (/)")
    arguments = parser.parse_args()
    package = _package()
    version, out = package.__version__, arguments.out.resolve()
    target = out / version
    shutil.rmtree(target, ignore_errors=True)
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder)
        write_sources(source, package)
        configuration = configure(version, arguments.url.rstrip("/") + "/", source)
        (source / "conf.py").write_text(configuration, encoding="utf-8")
        from sphinx.cmd.build import build_main

        words = ["-b", "html", "-W", "--keep-going", "-q", "-d", str(source / "trees"), str(source), str(target)]
        if build_main(words):
            return 1
    _list_versions(out, arguments.url.rstrip("/") + "/")
    broken = dead_links(target)
    print(*broken, sep="\n", end="\n" if broken else "")
    pages = len(list(target.rglob("*.html")))
    print(f"{target}: {pages} pages, {len(broken)} dead links")
    return int(bool(broken))


def _package():  # type: ignore[no-untyped-def]
    """The checkout's package, as `wattridge`, whatever is installed."""
    sys.path.insert(0, str(ROOT))
    package = importlib.import_module("app")
    sys.modules["wattridge"] = package
    for name in MODULES:
        sys.modules[f"wattridge.{name}"] = importlib.import_module(f"app.{name}")
    for name, module in RESULTS.items():  # shown without the modules that only we know
        setattr(package, name, getattr(importlib.import_module(f"app.{module}"), name))
    return package


# --- sources ----------------------------------------------------------------------------------------------------------


def write_sources(source: Path, package) -> None:  # type: ignore[no-untyped-def]
    """Everything that Sphinx reads."""
    for name in ("guide", "screenshots", "ci"):
        shutil.copytree(RESOURCES / name, source / name)
    for page in SITE.glob("pages/*"):
        shutil.copy(page, source)
    for file in SITE.glob("*.webp"):
        shutil.copy(file, source / "screenshots")
    (source / "_static").mkdir()
    (source / "_static" / "site.css").write_text(STATIC, encoding="utf-8")
    for name in ("wattridge.svg", "wattridge-64.png"):
        shutil.copy(RESOURCES / "icons" / name, source / "_static")
    _link_tables(source)
    for name in ("twins", "recordings"):
        (source / name).mkdir()
        shutil.copy(RESOURCES / name / "README.md", source / name)
    index = source / "guide" / "index.md"
    text = index.read_text(encoding="utf-8")
    pages = re.findall(r"^\| \[.*?\]\((\S+?)\.md\)", text, re.M)
    index.write_text(text + _toctree([*pages, "/twins/README", "/recordings/README"]), encoding="utf-8")
    missing = {path.stem for path in (source / "guide").glob("*.md")} - {*pages, "index"}
    if missing:
        raise SystemExit(f"the guide's index does not name {', '.join(sorted(missing))}")
    shutil.copy(ROOT / "CHANGELOG.md", source / "changelog.md")
    _write_gallery(source / "gallery.md")
    _write_commands(source / "reference", package)
    _write_reference(source / "reference", package)


def _link_tables(source: Path) -> None:
    """Where the text names a table of a benchmark, a link to it."""
    (source / "tables").mkdir()

    def linked(match: re.Match[str]) -> str:
        path = TABLES / match[1]
        if not path.is_file():
            return match[0]
        shutil.copy(path, source / "tables")
        return f"[`{match[1]}`](/tables/{match[1]})"

    for page in source.rglob("*.md"):
        text = page.read_text(encoding="utf-8")
        page.write_text(re.sub(r"`tests/benchmarks/(\w+\.txt)`", linked, text), encoding="utf-8")


def _toctree(pages: list[str], caption: str = "") -> str:
    option = f":caption: {caption}\n" if caption else ""
    return "\n\n```{toctree}\n:hidden:\n" + option + "\n" + "\n".join(pages) + "\n```\n"


def _write_gallery(path: Path) -> None:
    there = {file.stem for file in (RESOURCES / "screenshots").glob("*.png")}
    if there != CAPTIONS.keys():
        raise SystemExit(f"pictures without a caption, or captions without one: {there ^ CAPTIONS.keys()}")
    shown = [f":::{{figure}} screenshots/{name}.png\n:alt: {what}\n\n{what}\n:::\n" for name, what in CAPTIONS.items()]
    words = "Every picture is of the program itself; what is simulated, recorded or replayed says so in its header.\n"
    path.write_text("# Gallery\n" + words + "\n" + "\n".join(shown), encoding="utf-8")


def _write_commands(folder: Path, package) -> None:  # type: ignore[no-untyped-def]
    """The help of every command, by task."""
    folder.mkdir()
    cli = importlib.import_module(f"{package.__name__}.cli")
    parsers, lines = (
        cli.command_parsers(),
        ["# Command line", "", "Every option of each command, as `--help` says it."],
    )
    for title, group in cli._GROUPS.items():
        lines += ["", f"## {title}"]
        for name in group:
            lines += ["", f"### wattridge {name}", "", "```text", parsers[name].format_help().strip(), "```"]
    (folder / "command-line.md").write_text("\n".join(lines) + "\n", encoding="utf-8")


def _write_reference(folder: Path, package) -> None:  # type: ignore[no-untyped-def]
    """A page for each function, one for all results, one for errors, one for each module."""
    functions = [name for name in package.__all__ if inspect.isfunction(getattr(package, name))]
    errors = [name for name in package.__all__ if name not in functions]

    def page(name: str, title: str, *directives: str) -> None:
        body = "\n\n".join(directives)
        (folder / f"{name}.md").write_text(f"# {title}\n\n```{{eval-rst}}\n{body}\n```\n", encoding="utf-8")

    for name in functions:
        page(name, f"wattridge.{name}", f".. autofunction:: wattridge.{name}")
    members = (
        "\n   :members:\n   :inherited-members: Sequence, tuple, list, dict, Exception\n   :member-order: bysource"
    )
    results = [f".. autoclass:: wattridge.{name}{members}" for name in RESULTS]
    page("results", "Results", *results)
    page("errors", "Errors", *(f".. autoexception:: wattridge.{name}" for name in errors))
    for name in MODULES:
        module = importlib.import_module(f"{package.__name__}.{name}")
        own = sorted(item for item in vars(module) if item[0] != "_" and callable(getattr(module, item)))
        found = [
            f".. auto{'class' if inspect.isclass(getattr(module, item)) else 'function'}:: wattridge.{name}.{item}"
            + ("\n   :members:" if inspect.isclass(getattr(module, item)) else "")
            for item in own
        ]
        intro = inspect.cleandoc(module.__doc__ or "").replace("```", "::")
        page(f"module-{name}", f"wattridge.{name}", intro, *found)
    listed = "\n".join(f"| [`wattridge.{n}`]({n}.md) | {_first(getattr(package, n))} |" for n in functions)
    modules = [f"module-{name}" for name in MODULES]
    text = (
        "# Reference\n\n| function | what it does |\n|---|---|\n"
        + listed
        + "\n\nWhat they return stands under [Results](results.md), what they raise under [Errors](errors.md); [the"
        " command line](command-line.md) has every option. Every example is run by the tests.\n"
        + _toctree(["command-line", *functions, "results", "errors", *modules])
    )
    (folder / "index.md").write_text(text, encoding="utf-8")


def _first(function) -> str:  # type: ignore[no-untyped-def]
    return inspect.cleandoc(function.__doc__).partition("\n\n")[0].replace("\n", " ").replace("|", "\\|")


def configure(version: str, url: str, source: Path) -> str:
    """Sphinx's configuration."""
    options = {
        "logo": {"text": "Wattridge", "image_light": "_static/wattridge.svg", "image_dark": "_static/wattridge.svg"},
        "switcher": {"json_url": f"{url}switcher.json", "version_match": version},
        "check_switcher": False,
        "navbar_end": ["version-switcher", "theme-switcher"],
        "navigation_with_keys": False,
        "show_toc_level": 2,
        "footer_start": ["copyright"],
        "footer_end": [],
        "header_links_before_dropdown": 7,
    }
    settings = {
        "project": "Wattridge",
        "author": "the authors of Wattridge",
        "copyright": "the authors of Wattridge, Apache-2.0",
        "version": version,
        "release": version,
        "extensions": ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"],
        "myst_heading_anchors": 4,
        "myst_enable_extensions": ["colon_fence", "attrs_block"],
        "default_role": "code",
        "autodoc_typehints": "none",
        "add_module_names": False,
        "napoleon_google_docstring": False,
        "html_theme": "pydata_sphinx_theme",
        "html_theme_options": options,
        "html_static_path": ["_static"],
        "html_css_files": ["site.css"],
        "html_favicon": "_static/wattridge-64.png",
        "html_context": {"default_mode": "auto"},
        "html_title": f"Wattridge {version}",
        "html_show_sourcelink": False,
        "html_sidebars": {"index": [], "gallery": [], "changelog": []},
        "exclude_patterns": ["trees"],
        "highlight_language": "text",
        "suppress_warnings": ["myst.header"],
    }
    return "\n".join(f"{name} = {value!r}" for name, value in settings.items()) + "\n"


# --- what was built ---------------------------------------------------------------------------------------------------


def _list_versions(out: Path, url: str) -> None:
    """The list of versions, the newest first, and a page that leads to it."""
    numbers = [path.name for path in out.iterdir() if (path / "index.html").is_file()]
    numbers.sort(key=lambda name: [int(part) for part in re.findall(r"\d+", name)], reverse=True)
    entries = [{"name": name, "version": name, "url": f"{url}{name}/"} for name in numbers]
    (out / "switcher.json").write_text(json.dumps(entries, indent=1), encoding="utf-8")
    to = f"{numbers[0]}/index.html"
    moved = f'<meta http-equiv="refresh" content="0; url={to}"><a href="{to}">Wattridge</a>'
    page = f'<!doctype html><meta charset="utf-8">{moved}\n'
    (out / "index.html").write_text(page, encoding="utf-8")


class _Page(HTMLParser):
    """The links of a page, and the names in it that links may lead to."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: set[str] = set()
        self.names: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if value and name in ("href", "src"):
                self.links.add(value)
            elif value and name == "id":
                self.names.add(value)


def dead_links(folder: Path) -> list[str]:
    """Links within a built site whose file or whose place in it is not there."""
    pages = {
        path: _Page(path.read_text(encoding="utf-8")) for path in folder.rglob("*.html") if "_static" not in path.parts
    }
    dead = []
    for path, page in sorted(pages.items()):
        for link in sorted(page.links):
            parts = urlsplit(link)
            if parts.scheme or parts.netloc or link.startswith(("/", "data:")):
                continue
            to = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            to = to / "index.html" if to.is_dir() else to
            named = unquote(parts.fragment)
            if not to.is_file() or (named and to in pages and named not in pages[to].names):
                dead.append(f"{path.relative_to(folder)}: {link}")
    return dead


if __name__ == "__main__":
    raise SystemExit(main())
