"""Commands are functions whose annotations define arguments and options; argparse parses the words.

argparse comes with Python and is imported in 5 ms. typer needs 0.24 s, most of it for pydantic, and 12 MB: docs/shell.md.
"""

from __future__ import annotations

import inspect
import re
from argparse import SUPPRESS, Action, ArgumentParser, HelpFormatter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from reprlib import repr as short
from typing import Any, NoReturn, get_args, get_type_hints

from ...text import nearest

Command = Callable[..., None]


class UsageError(Exception):
    """The command line has words that the command does not take."""


class ParameterError(UsageError):
    """The value of an argument or an option is wrong; `param_hint` names it."""

    def __init__(self, message: str, param_hint: str | None = None) -> None:
        super().__init__(message)
        self.param_hint = param_hint

    def __str__(self) -> str:
        message = str(self.args[0])
        return message if self.param_hint is None else f"invalid value for {self.param_hint}: {message}"


class Argument:
    """A value by its place; it is optional if the function has a default."""

    def __init__(self, metavar: str, help: str) -> None:  # noqa: A002
        self.metavar, self.help = metavar, help


@dataclass(frozen=True)
class Value:
    """A parser of words: `read` returns the value of a word, or None if the word is not `what`."""

    metavar: str  # in help
    what: str  # in errors
    read: Callable[[str], Any]

    def __call__(self, text: str) -> Any:
        """Return the value, or raise ParameterError."""
        value = self.read(text)
        if value is None:
            raise ParameterError(f"{short(text)} is not {self.what}")
        return value


class Option:
    """A value by one of its names, or a flag if the annotation is bool.

    A `repeated` option may be given several times; several values are a tuple.

    `parser` converts a word to the value, or raises ParameterError. Help shows `show_default` instead of None, and
    `metavar` instead of the parser's.
    """

    def __init__(
        self,
        *names: str,
        help: str,  # noqa: A002
        parser: Callable[[str], Any] | None = None,
        metavar: str | None = None,
        show_default: str | None = None,
        repeated: bool = False,
    ) -> None:
        self.names, self.help, self.parser, self.metavar, self.show_default = names, help, parser, metavar, show_default
        self.repeated = repeated


@dataclass(frozen=True)
class Settings:
    """Options of a command for its keyword arguments, with their defaults, by name."""

    options: Mapping[str, tuple[Option, Any]]


class _Parser(ArgumentParser):
    """argparse that raises UsageError, and reads numbers such as -1e-3 as values."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(allow_abbrev=False, formatter_class=partial(HelpFormatter, max_help_position=32), **settings)
        self._negative_number_matcher = re.compile(r"-\.?\d")
        self._positionals.title, self._optionals.title = "Arguments", "Options"

    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{message}; see {self.prog} -h")


class _Collect(Action):
    """The value of an option that is given once, or the tuple of its values."""

    def __call__(self, parser: Any, namespace: Any, values: Any, option_string: str | None = None) -> None:  # noqa: ARG002
        before = getattr(namespace, self.dest, ())
        both = (*(before if isinstance(before, tuple) else (before,)), values)
        setattr(namespace, self.dest, both[0] if len(both) == 1 else both)


def parse(
    commands: Sequence[Command], words: list[str], summary: str, hint: str, version: Callable[[], str]
) -> Callable[[], None] | None:
    """Return the work that a command line asks for: a command with its values, or the version; None after help.

    Values that are not given are left to the defaults of the function.
    """
    top = _Parser(prog="slimsvm", usage="slimsvm COMMAND [OPTIONS] ...", description=summary, epilog=hint)
    top.add_argument("--version", action="store_true", help="Print the version.")
    places = top.add_subparsers(title="Commands", metavar="COMMAND", dest="command")
    for command in commands:
        _add(places, command)
    try:
        _check_command(words, places.choices, top)
        parsed, unknown = top.parse_known_args(words or ["--help"])
    except SystemExit:  # after help
        return None
    if unknown:
        _refuse(unknown, top if parsed.command is None else places.choices[parsed.command])
    given = vars(parsed)
    if given.pop("version"):
        return lambda: print(version())
    name = given.pop("command")
    if name is None:
        top.error("give a command")
    return partial(next(command for command in commands if command.__name__ == name), **given)


def _check_command(words: list[str], commands: Iterable[str], parser: _Parser) -> None:
    """Raise an error for a first word that is no command, with the command that it resembles."""
    if words and not words[0].startswith("-") and words[0] not in commands:
        near = nearest(words[0], commands)
        hint = "" if near is None else f"did you mean {near}? "
        parser.error(f"there is no command {short(words[0])}; {hint}the commands are {', '.join(commands)}")


def _refuse(unknown: list[str], parser: _Parser) -> NoReturn:
    """Raise an error that names the words a command does not take, and the option that the first one resembles."""
    options = parser._option_string_actions if unknown[0].startswith("-") else ()
    near = nearest(unknown[0].partition("=")[0], options)
    parser.error(f"unrecognized arguments: {' '.join(unknown)}" + ("" if near is None else f" (did you mean {near}?)"))


def _add(places: Any, command: Command) -> None:
    """Add the parser of a command."""
    name, words = command.__name__, inspect.getdoc(command)
    hints, parameters = get_type_hints(command, include_extras=True), inspect.signature(command).parameters
    described: dict[str, tuple[Any, Any, Any]] = {}
    for key, value in parameters.items():
        kind, info = get_args(hints[key])[:2]
        if isinstance(info, Settings):
            described |= {name: (Any, *option) for name, option in info.options.items()}
        else:
            described[key] = kind, info, value.default
    arguments = [_shown(info, default) for _, info, default in described.values() if isinstance(info, Argument)]
    parser = places.add_parser(
        name,
        prog=f"slimsvm {name}",
        usage=" ".join(["slimsvm", name, "[OPTIONS]", *arguments]),
        help=words,
        description=words,
    )
    for key, (kind, info, default) in described.items():
        if isinstance(info, Argument):
            optional = {} if default is inspect.Parameter.empty else {"nargs": "?", "default": default}
            parser.add_argument(
                key, metavar=info.metavar, help=_help(info.help, default), type=_converter(kind, None), **optional
            )
        elif kind is bool:
            parser.add_argument(*info.names, dest=key, action="store_true", default=SUPPRESS, help=_help(info.help))
        else:
            parser.add_argument(
                *info.names,
                dest=key,
                default=SUPPRESS,
                action=_Collect if info.repeated else "store",
                metavar=info.metavar or getattr(info.parser, "metavar", "PATH" if _is_path(kind) else "TEXT"),
                type=_named(_converter(kind, info.parser), info.names[0]),
                help=_help(info.help, info.show_default or default),
            )


def _shown(info: Argument, default: Any) -> str:
    return info.metavar if default is inspect.Parameter.empty else f"[{info.metavar}]"


def _help(text: str, default: Any = None) -> str:
    """Return a text for argparse, with the default if there is one."""
    shown = "" if default in (None, inspect.Parameter.empty) else f" [default: {default}]"
    return (text + shown).replace("%", "%%")


def _is_path(kind: Any) -> bool:
    return kind is Path or Path in get_args(kind)


def _converter(kind: Any, parser: Callable[[str], Any] | None) -> Callable[[str], Any]:
    return parser or (Path if _is_path(kind) else str)


def _named(parser: Callable[[str], Any], option: str) -> Callable[[str], Any]:
    """Return the parser with the name of the option in its errors."""

    def named(text: str) -> Any:
        try:
            return parser(text)
        except ParameterError as error:
            raise ParameterError(error.args[0], error.param_hint or option) from error

    return named
