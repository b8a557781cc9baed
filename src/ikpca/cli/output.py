"""Results, progress bars, errors and exit codes of the commands."""

from __future__ import annotations

import io
import json
import math
import os
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

import typer

#: Exit codes for invalid files and for invalid arguments.
FAILED, USAGE_ERROR = 1, 2
_INTERRUPTED = 130
#: Path of an input or output; None for an option that is not given.
_Path: TypeAlias = str | Path | None
#: Called with the number of finished steps and the total.
Advance = Callable[[int, int | None], None]


class CommandError(Exception):
    """Error of a command, reported as one sentence with an exit code."""

    code = FAILED


class UsageError(CommandError):
    """Invalid combination of options or unknown name."""

    code = USAGE_ERROR


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
        path, flags = _find_command(app, arguments)
        sentence, code = _describe(error, flags, expected)
        sys.stderr.write(f"{' '.join([name, *path])}: {sentence}\n")
        return code
    # Typer reports an interrupt by an exception or by this code, depending on its version.
    if code == _INTERRUPTED:
        sys.stderr.write(f"{name}: interrupted\n")
    return int(code)


def _find_command(app: typer.Typer, arguments: list[str]) -> tuple[list[str], dict[str, str]]:
    """Return the command and its subcommand, and their options by parameter."""
    command: Any = typer.main.get_command(app)
    path = []
    for word in arguments:
        if word in getattr(command, "commands", {}):
            path.append(word)
            command = command.commands[word]
    return path, {option.name: option.opts[0] for option in command.params}


def _describe(
    error: Exception, flags: dict[str, str], expected: tuple[type[Exception], ...]
) -> tuple[str, int]:
    """Return message and exit code of an expected error; raise any other again."""
    # The first line of messages, as those of scikit-learn have several.
    sentence, code = (str(error) or type(error).__name__).split("\n", maxsplit=1)[0], FAILED
    # Some versions of typer include their own copy of click, so its errors are recognized by
    # their methods.
    if hasattr(error, "format_message"):
        # Some versions validate by pydantic, which adds a prefix.
        sentence = " ".join(str(error.format_message()).split()).replace("Value error, ", "")
        code = int(getattr(error, "exit_code", FAILED))
    elif isinstance(error, CommandError):
        code = error.code
    elif isinstance(error, MemoryError):
        sentence = "not enough memory; pass --max-memory, fewer rows or fewer components"
    elif isinstance(error, OSError):
        sentence = error.strerror or sentence
        if error.filename is not None and str(error.filename) not in sentence:
            sentence = f"{error.filename}: {sentence}"
    elif not isinstance(error, (ValueError, *expected)):
        raise error
    else:
        # gamma=-1 of the library becomes --gamma=-1.
        parameter, separator, rest = sentence.partition("=")
        if separator and parameter in flags:
            sentence, code = f"{flags[parameter]}={rest}", USAGE_ERROR
    return sentence if sentence.endswith((".", "!", "?")) else f"{sentence}.", code


@dataclass
class Report:
    """Output of a command, with the warnings that it caused."""

    quiet: bool
    as_json: bool
    warnings: list[str] = field(default_factory=list)

    def show(
        self, document: Mapping[str, Any], *lines: str, wrote: Sequence[str | Path] = ()
    ) -> None:
        """Print the document as JSON, or lines of text and the files written.

        Nothing is printed if results were written to standard output.
        """
        if "-" in wrote:
            return
        if self.as_json:
            files = {"wrote": [str(path) for path in wrote]} if wrote else {}
            whole = {**document, **files, "warnings": self.warnings}
            sys.stdout.write(json.dumps(_to_json(whole), indent=2, allow_nan=False) + "\n")
            return
        if self.quiet:
            return
        for line in (*lines, *(f"Wrote {path}" for path in wrote)):
            sys.stdout.write(f"{line}\n")

    @contextmanager
    def progress(self, title: str) -> Iterator[Advance]:
        """Show a progress bar in a terminal; it is indeterminate until the total is known."""
        if self.quiet or not sys.stderr.isatty():
            yield lambda done, total: None
            return
        from rich.console import Console
        from rich.progress import Progress

        with Progress(console=Console(stderr=True), transient=True) as bars:
            task = bars.add_task(title, total=None)
            yield lambda done, total: bars.update(task, completed=done, total=total)

    def _show_warning(self, message: Warning | str, *_: Any, **__: Any) -> None:
        """Print a warning without file and line number."""
        sentence = str(message).split("\n", maxsplit=1)[0]
        self.warnings.append(sentence)
        if not self.quiet:
            sys.stderr.write(f"ikpca: warning: {sentence}\n")


@contextmanager
def reporting(quiet: bool, as_json: bool) -> Iterator[Report]:
    """Return the output of a command; its warnings are shown whatever the filters of Python."""
    report = Report(quiet, as_json)
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        # Deprecations concern developers, not users of the command line.
        for category in (DeprecationWarning, FutureWarning, PendingDeprecationWarning):
            warnings.simplefilter("ignore", category)
        # Names were compared when a table was read.
        warnings.filterwarnings("ignore", message="X does not have valid feature names")
        warnings.showwarning = report._show_warning
        yield report


def check_outputs(outputs: Iterable[_Path], inputs: Iterable[_Path], *, force: bool) -> None:
    """Raise an error, before the work, if an output cannot be written or a file would be lost.

    An output must not be an input or a file of an input folder, and no two outputs may be the same
    file. Any other existing file is overwritten only with ``force``.
    """
    from ikpca.cli.files import split_member
    from ikpca.model_files import check_writable

    read = [split_member(path)[0] for path in inputs if path is not None]
    read = [file for path in read for file in (path.iterdir() if path.is_dir() else [path])]
    seen = set()
    for path in (split_member(path)[0] for path in outputs if path is not None):
        if path.resolve() in seen:
            raise UsageError(f"{path}: is the path of two outputs; pass different paths.")
        seen.add(path.resolve())
        if path.is_dir():
            raise UsageError(f"{path}: is a folder; pass the path of a file.")
        check_writable(path)
        if path.exists() and any(file.exists() and path.samefile(file) for file in read):
            raise UsageError(f"{path}: is an input, which is never overwritten; pass another path.")
        if path.exists() and not force:
            raise UsageError(f"{path}: exists already; pass another path, or --force.")


def _to_json(value: Any) -> Any:
    """Convert a value to types of JSON; NaN and infinity become null."""
    if isinstance(value, Mapping):
        return {str(key): _to_json(part) for key, part in value.items()}
    if hasattr(value, "tolist"):
        return _to_json(value.tolist())
    if isinstance(value, list | tuple):
        return [_to_json(part) for part in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if isinstance(value, str | int | float | bool | None) else str(value)
