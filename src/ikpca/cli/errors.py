"""Error messages and exit codes of the commands."""

from __future__ import annotations

import io
import os
import re
import sys
from typing import Any

import typer

#: Exit codes for invalid files and for invalid arguments.
FAILED, USAGE_ERROR = 1, 2
_INTERRUPTED = 130


class CommandError(Exception):
    """Error of a command, reported as one sentence with an exit code."""

    def __init__(self, sentence: str, code: int = FAILED) -> None:
        super().__init__(sentence)
        self.code = code


class UsageError(CommandError):
    """Invalid combination of options or unknown name."""

    def __init__(self, sentence: str) -> None:
        super().__init__(sentence, USAGE_ERROR)


def run_app(
    app: typer.Typer, arguments: list[str], name: str, expected: tuple[type[Exception], ...] = ()
) -> int:
    """Run an application and return its exit code.

    Errors of the library, and those of the expected classes, become one sentence after the name.
    """
    # Code pages of Windows do not have the Greek letters of tables and help.
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
    try:
        code = app(arguments, prog_name=name, standalone_mode=False) or 0
    except (KeyboardInterrupt, typer.Abort):
        code = _INTERRUPTED
    except BrokenPipeError:
        # The output was closed; the interpreter must not flush to it on exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILED
    except Exception as error:
        commands, flags = _find_command(app, arguments)
        sentence, code = _describe(error, flags, expected)
        sys.stderr.write(f"{' '.join([name, *commands])}: {sentence}\n")
        return code
    # Typer reports an interrupt by an exception or by this code, depending on its version.
    if code == _INTERRUPTED:
        sys.stderr.write(f"{name}: interrupted\n")
    return int(code)


def _find_command(app: typer.Typer, arguments: list[str]) -> tuple[list[str], dict[str, str]]:
    """Return the command and its subcommand, and their options by parameter."""
    command: Any = typer.main.get_command(app)
    path = []
    for word in (word for word in arguments if not word.startswith("-")):
        if word not in getattr(command, "commands", {}):
            break
        path.append(word)
        command = command.commands[word]
    options = [one for one in command.params if one.opts and one.opts[0].startswith("--")]
    return path, {option.name: option.opts[0] for option in options}


def _describe(
    error: Exception, flags: dict[str, str], expected: tuple[type[Exception], ...]
) -> tuple[str, int]:
    """Return message and exit code of an expected error; raise any other again."""
    code = FAILED
    # Some versions of typer include their own copy of click, so its errors are recognized by
    # their methods.
    if hasattr(error, "format_message"):
        sentence = " ".join(str(error.format_message()).split())
        code = int(getattr(error, "exit_code", FAILED))
    elif isinstance(error, CommandError):
        sentence, code = str(error), error.code
    elif isinstance(error, MemoryError):
        sentence = "not enough memory; pass --max-memory, fewer rows or fewer components"
    elif isinstance(error, OSError):
        sentence = error.strerror or str(error)
        if error.filename is not None and str(error.filename) not in sentence:
            sentence = f"{error.filename}: {sentence}"
    elif isinstance(error, (ValueError, *expected)):
        # Messages of scikit-learn have several lines.
        sentence = (str(error) or type(error).__name__).split("\n", maxsplit=1)[0]
        # gamma=-1 of the library becomes --gamma=-1.
        found = re.match(r"(\w+)=", sentence)
        if found is not None and found[1] in flags:
            sentence, code = f"{flags[found[1]]}={sentence[found.end() :]}", USAGE_ERROR
    else:
        raise error
    return sentence if sentence.endswith((".", "!", "?")) else f"{sentence}.", code
