"""Completion of the command line for bash, zsh and fish."""

from __future__ import annotations

import re
from collections.abc import Mapping

from command_line import Command, Option

_BASH = """\
# bash completion for wattridge, made from its command line by resources/packaging/completion.py
_wattridge() {
    local current=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} command= word options values
    for word in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
        case $word in
            COMMANDS_PATTERN) command=$word; break ;;
        esac
    done
    COMPREPLY=()
    case "$command $before" in
VALUES
    esac
    if [ -n "${values+set}" ] && [ -n "$values" ]; then
        mapfile -t COMPREPLY < <(compgen -W "$values" -- "$current")
        return
    fi
    case "$command" in
OPTIONS
    esac
    if [ "${current#-}" != "$current" ] || [ -z "$command" ]; then
        mapfile -t COMPREPLY < <(compgen -W "$options" -- "$current")
    else
        mapfile -t COMPREPLY < <(compgen -W "$options" -f -- "$current")
    fi
}
complete -o filenames -F _wattridge wattridge
"""
_ZSH = """\
#compdef wattridge
# zsh completion for wattridge, made from its command line by resources/packaging/completion.py
_wattridge() {
    local context state line curcontext="$curcontext"
    _arguments -C \\
MAIN
        '1: :->command' '*:: :->arguments'
    case $state in
        command)
            local -a commands=(
NAMES
            )
            _describe command commands ;;
        arguments)
            case $words[1] in
CASES
            esac ;;
    esac
}
_wattridge "$@"
"""


def bash(commands: Mapping[str, Command]) -> str:
    """For `/usr/share/bash-completion/completions/wattridge`."""
    names = [name for name in commands if name]
    values, options = [], []
    for name, command in commands.items():
        for option in command.options:
            if option.flags and option.choices:
                keys = "|".join(f'"{name} {flag}"' for flag in option.flags)
                values.append(f'        {keys}) values="{" ".join(option.choices)}" ;;')
        words = [flag for option in command.options for flag in option.flags]
        words += [choice for option in command.options if not option.flags for choice in option.choices]
        words += names if not name else []
        options.append(f'        "{name}") options="{" ".join(words)}" ;;')
    text = _BASH.replace("COMMANDS_PATTERN", "|".join(names)).replace("VALUES", "\n".join(values))
    return text.replace("OPTIONS", "\n".join(options))


def zsh(commands: Mapping[str, Command]) -> str:
    """For `/usr/share/zsh/vendor-completions/_wattridge`."""
    main = "\n".join(f"        {_zsh_option(option)} \\" for option in commands[""].options if option.flags)
    names = "\n".join(f"                {_quoted(f'{name}:{each.about}')}" for name, each in commands.items() if name)
    cases = []
    for name, command in commands.items():
        if name:
            words = [_zsh_option(option) for option in command.options]
            cases.append(f"                {name}) _arguments {' '.join(words)} ;;")
    return _ZSH.replace("MAIN", main).replace("NAMES", names).replace("CASES", "\n".join(cases))


def fish(commands: Mapping[str, Command]) -> str:
    """For `/usr/share/fish/vendor_completions.d/wattridge.fish`."""
    lines = ["# fish completion for wattridge, made from its command line by resources/packaging/completion.py"]
    for name, command in commands.items():
        if name:
            about = _quoted(command.about)
            lines.append(f"complete -c wattridge -n __fish_use_subcommand -f -a {name} -d {about}")
        where = f'"__fish_seen_subcommand_from {name}"' if name else "__fish_use_subcommand"
        for option in command.options:
            flags = [f"-l {flag[2:]}" if flag.startswith("--") else f"-s {flag[1:]}" for flag in option.flags]
            takes = []
            if option.choices:
                takes = ["-x" if option.flags else "-f", "-a", _quoted(" ".join(option.choices))]
            elif option.value and option.flags:
                takes = ["-r"]
            if flags or takes:
                words = [*flags, *takes, "-d", _quoted(option.help)]
                lines.append(f"complete -c wattridge -n {where} {' '.join(words)}")
    return "\n".join(lines) + "\n"


def _zsh_option(option: Option) -> str:
    """One option as `_arguments` has it."""
    about = re.sub(r"([\[\]:\\])", r"\\\1", option.help)
    value = re.sub(r"[\[\]:()\s.]+", " ", option.value).strip() or "value"
    if option.choices:
        action = f"({' '.join(option.choices)})"
    else:
        action = "_files"
    if not option.flags:
        return _quoted(f"*:{value}:{action}")
    takes = f":{value}:{action}" if option.value else ""
    return " ".join(_quoted(f"{flag}[{about}]{takes}") for flag in option.flags)


def _quoted(text: str) -> str:
    """For the shell, in single quotes."""
    return "'" + text.replace("'", "'\\''") + "'"
