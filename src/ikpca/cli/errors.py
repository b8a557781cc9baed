"""Error messages and exit codes of the commands."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Any, NamedTuple

import typer

#: Exit codes for invalid files and for invalid arguments.
FAILED, USAGE_ERROR = 1, 2
_INTERRUPTED = 130
_PARAMETER = re.compile(r"(\w+)=")


class Failure(NamedTuple):
    """Message and exit code of an error."""

    sentence: str
    code: int


class CommandError(Exception):
    """Error of a command, reported as one sentence with an exit code."""

    def __init__(self, sentence: str, code: int = FAILED) -> None:
        super().__init__(sentence)
        self.code = code


class UsageError(CommandError):
    """Invalid combination of options or unknown name."""

    def __init__(self, sentence: str) -> None:
        super().__init__(sentence, USAGE_ERROR)


@contextmanager
def as_usage_errors() -> Iterator[None]:
    """Report InvalidInput as a usage error, for commands that read no files of the user."""
    from ikpca.errors import InvalidInput

    try:
        yield
    except InvalidInput as error:
        raise UsageError(str(error)) from error


def check_matplotlib() -> None:
    """Raise an error before the work of a command that draws if matplotlib is missing."""
    if find_spec("matplotlib") is None:
        raise CommandError("the figures need matplotlib; run: pip install 'ikpca[plot]'.")


def describe_error(
    error: Exception, flags: Mapping[str, str], expected: tuple[type[Exception], ...] = ()
) -> Failure | None:
    """Return the message and exit code of an error; None for an unexpected error.

    Parameters
    ----------
    error : Exception
    flags : mapping of str to str
        Options of the command by parameter, which replace parameters in messages: gamma=-1 of the
        library becomes --gamma=-1.
    expected : tuple of exception classes
        Further exceptions with a message for users.
    """
    # Some versions of typer include their own copy of click, so its errors are recognized by
    # their methods.
    if hasattr(error, "format_message"):
        sentence = " ".join(str(error.format_message()).split())
        return Failure(_with_period(sentence), int(getattr(error, "exit_code", FAILED)))
    if isinstance(error, CommandError):
        return Failure(str(error), error.code)
    if isinstance(error, MemoryError):
        return Failure(
            "not enough memory; pass --max-memory, fewer rows or fewer components.", FAILED
        )
    if isinstance(error, OSError):
        return Failure(_describe_os_error(error), FAILED)
    if isinstance(error, (ValueError, *expected)):
        return _describe_value_error(error, flags)
    return None


def _describe_value_error(error: Exception, flags: Mapping[str, str]) -> Failure:
    """Return the first line of a message; those of scikit-learn have several."""
    sentence = (str(error) or type(error).__name__).split("\n", maxsplit=1)[0]
    sentence = _with_period(sentence)
    found = _PARAMETER.match(sentence)
    if found is None or found[1] not in flags:
        return Failure(sentence, FAILED)
    return Failure(f"{flags[found[1]]}={sentence[found.end() :]}", USAGE_ERROR)


def _with_period(sentence: str) -> str:
    return sentence if sentence.endswith((".", "!", "?")) else f"{sentence}."


def _describe_os_error(error: OSError) -> str:
    reason = error.strerror or str(error)
    named = [str(name) for name in (error.filename,) if name is not None and name not in reason]
    return f"{': '.join([*named, reason])}."


def run_app(
    app: typer.Typer,
    arguments: list[str],
    name: str,
    expected: tuple[type[Exception], ...] = (),
) -> int:
    """Run an application and return its exit code; an expected error becomes one sentence.

    Parameters
    ----------
    app : typer.Typer
    arguments : list of str
    name : str
        Name of the program in messages.
    expected : tuple of exception classes
        Further exceptions that are reported as one sentence.
    """
    try:
        code = app(arguments, prog_name=name, standalone_mode=False) or 0
    except (KeyboardInterrupt, typer.Abort):
        code = _INTERRUPTED
    except BrokenPipeError:
        # The output was closed; the interpreter must not flush to it on exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except Exception as error:
        commands = _command_path(app, arguments)
        failure = describe_error(error, _flags(app, commands), expected)
        if failure is None:
            raise
        sys.stderr.write(f"{' '.join([name, *commands])}: {failure.sentence}\n")
        return failure.code
    # Typer reports an interrupt by an exception or by this code, depending on its version.
    if code == _INTERRUPTED:
        sys.stderr.write(f"{name}: interrupted\n")
    return int(code)


def _flags(app: typer.Typer, commands: list[str]) -> dict[str, str]:
    """Map the names of a command's parameters to the options that a user writes."""
    command: Any = typer.main.get_command(app)
    for name in commands:
        command = command.commands[name]
    parameters = [one for one in command.params if one.opts]
    return {option.name: option.opts[0] for option in parameters if option.opts[0][:2] == "--"}


def _command_path(app: typer.Typer, arguments: list[str]) -> list[str]:
    """Return the command and its subcommand, if any."""
    found: list[str] = []
    commands: dict[str, Any] = getattr(typer.main.get_command(app), "commands", {})
    for word in (word for word in arguments if not word.startswith("-")):
        if word not in commands:
            break
        found.append(word)
        commands = getattr(commands[word], "commands", {})
    return found
