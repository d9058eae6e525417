"""The manual page of the command, man/maxent.1, from its parser.

``python -m maxent._commands.manual man/maxent.1`` writes it anew.
"""

import argparse
import sys

import maxent
from maxent._commands.usage import EXIT_CODES, commands_of, make_parser

__all__ = ["manual"]


def manual():
    """Text of the manual page, in the macros of man(7)."""
    parser = make_parser()
    lines = [
        f'.TH MAXENT 1 "" "maxent {maxent.__version__}" "User commands"',
        *(".SH NAME", r"maxent \- " + _text(parser.description.rstrip("."))),
        *(".SH SYNOPSIS", r".B maxent", ".I command", "[options] [files]"),
        *(".SH DESCRIPTION", _text(parser.description)),
        "Every command explains itself by",
        _bold("maxent command --help") + ";",
        _bold("maxent fit --estimator NAME --help"),
        "shows what applies to one estimator.",
        ".SH OPTIONS",
    ]
    lines += _options(parser)
    for name, command in commands_of(parser).items():
        lines += [f'.SH "MAXENT {name.upper()}"', _usage(command)]
        lines += [".PP", _text(command.description)]
        lines += _options(command)
    lines += [".SH EXIT STATUS"]
    for code, meaning in EXIT_CODES.items():
        lines += [".TP", _bold(str(code)), _text(meaning)]
    lines += [".SH EXAMPLES", ".nf"]
    for command in (parser, *commands_of(parser).values()):
        lines += [_text(line) for line in command.epilog.splitlines()[1:]]
    return "\n".join([*lines, ".fi", ""])


def _usage(command):
    """The arguments that a command needs, and which it may have."""
    shown = [r"\fB" + _text(command.prog) + r"\fR", r"[\fIoptions\fR]"]
    for action in command._get_positional_actions():
        name = r"\fI" + _text(action.metavar or action.dest) + r"\fR"
        shown.append(f"[{name}]" if action.nargs == "?" else name)
    return " ".join(shown)


def _options(parser):
    """Entries of the options, by the groups of the help."""
    lines = []
    formatter = parser._get_formatter()
    for group in parser._action_groups:
        actions = [
            action
            for action in group._group_actions
            if action.help is not argparse.SUPPRESS
            and not isinstance(action, argparse._SubParsersAction)
        ]
        if not actions:
            continue
        if group.title.startswith("parameters"):
            lines += [f'.SS "{_text(group.title.capitalize())}"']
        for action in actions:
            lines += [".TP", _heading(action)]
            lines.append(_text(formatter._expand_help(action) if action.help else ""))
    return lines


def _heading(action):
    """Flags of an option with its value, or the name of an argument."""
    value = action.metavar or (action.dest.upper() if action.option_strings else None)
    if action.choices is not None and action.metavar is None:
        value = "{" + ",".join(map(str, action.choices)) + "}"
    if not action.option_strings:
        return r"\fI" + _text(action.metavar or action.dest) + r"\fR"
    flags = ", ".join(_bold(flag) for flag in action.option_strings)
    return flags if action.nargs == 0 else flags + r" \fI" + _text(value) + r"\fR"


def _bold(text):
    return r"\fB" + _text(text) + r"\fR"


def _text(text):
    """Text without what roff takes for commands."""
    text = text.replace("\\", r"\e").replace("-", r"\-")
    return rf"\&{text}" if text.startswith((".", "'")) else text


if __name__ == "__main__":
    with open(sys.argv[1], "w", encoding="utf-8", newline="\n") as stream:
        stream.write(manual())
