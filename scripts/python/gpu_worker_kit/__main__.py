"""The commands of the kit."""

from __future__ import annotations

import argparse
import pathlib
import signal
import sys
from typing import Optional

from . import build, draft, new
from .tools import KitError

INTERRUPTED = 128 + signal.SIGINT  # as a shell says it


def parser() -> argparse.ArgumentParser:
    whole = argparse.ArgumentParser(prog="gpu-worker programs", description="A kit for programs: kernels and their manifest.")
    commands = whole.add_subparsers(dest="command", required=True, metavar="new|build|test|import")
    command = commands.add_parser("new", help="make the folder of a program that builds, with cases that test it")
    command.add_argument("folder", metavar="NAME", type=pathlib.Path, help="the folder; its last part is the program's name")
    command = commands.add_parser("build", help="compile a program's kernels to PTX and for the CPU, and check the manifest")
    command.add_argument("folder", metavar="DIR", type=pathlib.Path, nargs="?", default=pathlib.Path("."),
                         help="the program's folder (.)")
    command.add_argument("--ptx-compiler", metavar="FILE", help="a clang or nvcc; without it, what is found on the path")
    command = commands.add_parser("test", help="build it, run its cases, compare, and report accesses outside its buffers")
    command.add_argument("folder", metavar="DIR", type=pathlib.Path, nargs="?", default=pathlib.Path("."),
                         help="the program's folder (.)")
    command.add_argument("--driver", choices=["cpu", "cuda"], default="cpu", help="what runs the cases (cpu)")
    command.add_argument("--no-build", action="store_true", help="take the images as they are")
    command = commands.add_parser("import", help="make a program of PTX or a cubin that another tool has made")
    command.add_argument("image", metavar="FILE", type=pathlib.Path, help="X.ptx or X.cubin")
    command.add_argument("--name", help="the program's name; without it, the file's")
    command.add_argument("--dir", metavar="DIR", type=pathlib.Path, default=pathlib.Path("."),
                         help="where its folder is made (.)")
    return whole


def fail(command: str, why: str) -> int:
    print(f"gpu-worker programs {command}: {why}", file=sys.stderr)
    return 1


def main(arguments: Optional[list[str]] = None) -> int:
    given = parser().parse_args(arguments)
    try:
        if given.command == "new":
            new.create(given.folder)
        elif given.command == "build":
            build.build(given.folder, given.ptx_compiler)
        elif given.command == "test":
            from . import cases

            return cases.test(given.folder, given.driver, not given.no_build)
        else:
            draft.import_image(given.image, given.name, given.dir)
    except KitError as error:
        return fail(given.command, str(error))
    except OSError as error:
        return fail(given.command, f"{error.filename}: {error.strerror}" if error.filename else f"{error.strerror}")
    except KeyboardInterrupt:
        return INTERRUPTED
    return 0


if __name__ == "__main__":
    sys.exit(main())
