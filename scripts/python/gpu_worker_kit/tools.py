"""Functions that all commands of the kit use: they find the worker and its files, and run other programs."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import pathlib
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from typing import Any


class KitError(Exception):
    """A mistake of the caller. Its text says what is wrong and how to fix it."""


def binary() -> str:
    """The path of the worker: the one that started the kit, or else the one on the path."""
    found = os.environ.get("GPU_WORKER_BINARY") or shutil.which("gpu-worker")
    if found is None:
        raise KitError("there is no gpu-worker on the path; install it, or set GPU_WORKER_BINARY to it")
    return found


def headers() -> pathlib.Path:
    """The folder with kernel.h. It is installed with the worker."""
    folder = pathlib.Path(binary()).resolve().parent.parent / "include" / "gpu-worker"
    if not (folder / "kernel.h").exists():
        raise KitError(f"there is no kernel.h in {folder}; install gpu-worker with its headers")
    return folder


def run(*command: object) -> str:
    """Runs a command that must succeed, and returns its output."""
    words = [str(word) for word in command]
    try:
        done = subprocess.run(words, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    except OSError as error:
        raise KitError(f"cannot run {words[0]}: {error.strerror}") from None
    if done.returncode != 0:
        raise KitError(f"{words[0]} failed:\n{(done.stderr or done.stdout).rstrip()}")
    return done.stdout


@contextlib.contextmanager
def made_aside(folder: pathlib.Path) -> Iterator[pathlib.Path]:
    """A folder that becomes `folder` in one step once all is in it. If something fails, nothing of it stays: a program that is
    half there would keep workers from starting."""
    if os.path.lexists(folder):
        raise KitError(f"{folder} exists; choose another name")
    if os.path.lexists(folder.parent) and not folder.parent.is_dir():
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(folder))
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".gpu-worker-", dir=folder.parent) as room:
        draft = pathlib.Path(room) / folder.name
        draft.mkdir()
        yield draft
        draft.rename(folder)


def program_of(folder: pathlib.Path) -> dict[str, Any]:
    """Lets the worker read the program in `folder`, and returns what it tells about it."""
    folder = folder.resolve()
    done = subprocess.run([binary(), "programs", "--json", "--dir", str(folder.parent)], capture_output=True, text=True)
    wrong = [line for line in done.stderr.splitlines() if f"{folder}/" in line]
    if wrong:
        raise KitError("the worker refuses the program:\n" + "\n".join(line.split(": ", 1)[-1] for line in wrong))
    if not done.stdout:
        raise KitError(done.stderr.rstrip())
    found: list[dict[str, Any]] = [program for program in json.loads(done.stdout) if program["name"] == folder.name]
    if not found:
        raise KitError(f"there is no program in {folder}; make one with gpu-worker programs new")
    return found[0]
