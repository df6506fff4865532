"""What packages bring beside the program is made from its own command line, all of it and nothing else."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Mapping

import pytest

from app.base.paths import resources
from app.cli import _COMMANDS, command_parsers

sys.path.insert(0, str(resources() / "packaging"))

import completion
import manual
from command_line import Command, commands


@pytest.fixture(scope="module")
def described() -> Mapping[str, Command]:
    return commands(command_parsers)


def flags_of(command: Command) -> set[str]:
    return {flag for option in command.options for flag in option.flags}


def test_every_command_with_every_option_is_there(described: Mapping[str, Command]) -> None:
    assert list(described) == ["", *_COMMANDS]
    assert {"--gpu", "--specification", "--version"} < flags_of(described[""])
    assert {"--gpu", "--allow-control", "--json", "--strategy"} < flags_of(described["tune"])
    (what,) = (option for option in described["helper"].options if option.choices)
    assert what.choices == ("show", "install", "remove")


def test_a_page_of_the_manual_says_all_that_the_help_says(described: Mapping[str, Command]) -> None:
    pages = manual.pages(described, "1.2.3", "2026-01-31")
    assert set(pages) == {"wattridge.1", "wattridge-control.8", *(f"wattridge-{name}.1" for name in _COMMANDS)}
    for name, command in described.items():
        page = pages[f"wattridge-{name}.1" if name else "wattridge.1"]
        plain = page.replace("\\-", "-")
        assert "1.2.3" in plain
        for option in command.options:
            assert all(f"\\fB{flag}\\fR" in plain for flag in option.flags)
        for line in page.splitlines():
            assert not re.match(r"[.'](?!TH |SH |TP$|B |I |BR |nh$|ad l$|br$|PP$)", line), "text, not a request"


@pytest.mark.parametrize("text", [".SH of the text", "'quoted", "a\\fBc", "--gpu", ""])
def test_no_text_is_read_as_a_request(text: str) -> None:
    assert not manual._text(text).startswith((".", "'"))
    assert "\\f" not in manual._text(text)


def test_pages_are_of_the_language_that_man_reads(described: Mapping[str, Command]) -> None:
    groff = shutil.which("groff")
    if groff is None:
        pytest.skip("groff is not installed")
    pages = manual.pages(described, "1.2.3", "2026-01-31")
    text = "".join(pages.values())
    done = subprocess.run(
        [groff, "-man", "-Tutf8", "-ww", "-z"], input=text, capture_output=True, text=True, check=True
    )
    assert done.stderr == ""


def test_bash_offers_commands_options_and_choices(described: Mapping[str, Command]) -> None:
    bash = shutil.which("bash")
    if bash is None:
        pytest.skip("bash is not installed")
    script = completion.bash(described)

    def offered(*words: str) -> set[str]:
        line = " ".join(f"'{word}'" for word in ("wattridge", *words))
        code = (
            f"{script}\nCOMP_WORDS=({line}); COMP_CWORD={len(words)}; _wattridge; printf '%s\\n' \"${{COMPREPLY[@]}}\""
        )
        done = subprocess.run([bash, "--norc", "-c", code], capture_output=True, text=True, check=False, cwd="/")
        assert done.stderr == ""
        return set(done.stdout.split())

    assert offered("tu") == {"tune"}
    assert set(_COMMANDS) < offered("")
    assert offered("tune", "--strategy-") == {"--strategy-option"}
    assert offered("helper", "in") == {"install"}
    assert offered("--gpu", "0", "tune", "--resu") == {"--resume"}
    choosing = [(name, option) for name, command in described.items() for option in command.options if option.choices]
    assert any(each.flags for _, each in choosing)
    for name, each in choosing:
        assert offered(*filter(None, (name, *each.flags[:1])), "") >= set(each.choices)


def test_zsh_and_fish_know_every_option(described: Mapping[str, Command]) -> None:
    zsh, fish = completion.zsh(described), completion.fish(described)
    for name, command in described.items():
        for flag in flags_of(command):
            assert f"'{flag}[" in zsh
            where = f'"__fish_seen_subcommand_from {name}"' if name else "__fish_use_subcommand"
            long = f"-l {flag[2:]} " if flag.startswith("--") else f"-s {flag[1:]} "
            assert any(f"-n {where} " in line and long in f"{line} " for line in fish.splitlines())
    for program, script in (("zsh", zsh), ("fish", fish)):
        found = shutil.which(program)
        if found is not None:
            done = subprocess.run([found, "-n"], input=script, capture_output=True, text=True, check=False)
            assert done.returncode == 0, done.stderr
