"""Runs kernels on the CPU under the address sanitizer. Each buffer has memory of exactly its size, so the sanitizer sees each
read or write outside of it. What it finds is reported with the buffer's name and the index."""

from __future__ import annotations

import math
import os
import pathlib
import struct
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from typing import Any

from .build import make_cpu

HARNESS = pathlib.Path(__file__).with_name("outside.c")
FLAGS = ["-g", "-O1", "-fno-omit-frame-pointer", "-DKERNEL_ONE_BLOCK", "-fsanitize=address", "-pthread"]
OPTIONS = "detect_leaks=0:redzone=2048:max_redzone=2048:symbolize=0:print_stats=0:exitcode=99"
COOPERATIVE_THREADS_MAX = 1024  # all run at once, each as a thread of the system
VALUES = {"u32": "<I", "i32": "<i", "u64": "<Q", "i64": "<q", "f32": "<f", "f64": "<d"}

# The entry as the manifest has it, the case, the arrays of its buffers, and the launch.
Run = tuple[Mapping[str, Any], Mapping[str, Any], Mapping[str, Any], Mapping[str, Any]]


def three(extents: Sequence[int]) -> list[int]:
    """Extents with x, y and z; those that are not given are 1."""
    return [*extents, 1, 1][:3]


def argument(arg: Mapping[str, Any], case: Mapping[str, Any], buffers: Mapping[str, Any], in_buffer: bool) -> bytes:
    """Encodes an argument for outside.c: whether it is a buffer, how long its name is, how large an element is and how large
    all of it is; then the name and the bytes."""
    name: bytes = arg["name"].encode()
    data: bytes
    is_buffer, width = False, 1
    if arg["role"] != "value":
        data, width, is_buffer = buffers[arg["name"]].tobytes(), buffers[arg["name"]].itemsize, True
    elif arg["type"] == "words":
        data, width, is_buffer = struct.pack(f"<{len(case[arg['name']])}I", *case[arg["name"]]), 4, in_buffer
    else:
        data = struct.pack(VALUES[arg["type"]], case[arg["name"]])
    return struct.pack("<IIIQ", is_buffer, len(name), width, len(data)) + name + data


def extents(run_of: Run) -> tuple[list[int], list[int]]:
    """The grid and the block of a run."""
    entry, _, _, shape = run_of
    block = three(shape.get("block", entry["block"]))
    return three(shape["grid"]) if "grid" in shape else [-(-shape["elements"] // block[0]), 1, 1], block


def written(run_of: Run) -> bytes:
    """Encodes a run for outside.c."""
    entry, case, buffers, shape = run_of
    grid, block = extents(run_of)
    shared = shape.get("shared_bytes", entry["shared_bytes"])
    whole = struct.pack("<9I", *grid, *block, shared, len(entry["args"]), entry["cooperative"])
    return whole + b"".join(argument(arg, case, buffers, bool(entry.get("params_in_buffer"))) for arg in entry["args"])


def find(source: pathlib.Path, runs: Sequence[Run]) -> list[list[str]]:
    """Runs the kernels. Returns for each run a text for each access outside of its buffers."""
    found: list[list[str]] = []
    with tempfile.TemporaryDirectory(prefix="gpu-worker-outside-") as name:
        room = pathlib.Path(name)
        for number, run_of in enumerate(runs, 1):
            entry = run_of[0]
            harness = room / entry["symbol"]
            threads = math.prod(sum(extents(run_of), []))
            if entry["cooperative"] and threads > COOPERATIVE_THREADS_MAX:
                print(f"case {number}: not run under the address sanitizer, which takes at most {COOPERATIVE_THREADS_MAX} threads "
                      f"in a cooperative grid, and this one has {threads}")
                found.append([])
                continue
            if not harness.exists():
                make_cpu([source, HARNESS], harness, [*FLAGS, f"-DKERNEL_INFO=kernel_{entry['symbol']}"])
            (room / "case").write_bytes(written(run_of))
            done = subprocess.run([str(harness), str(room / "case")], capture_output=True, text=True, errors="replace",
                                  env=os.environ | {"ASAN_OPTIONS": OPTIONS})
            said = [line.removeprefix("outside: ") for line in done.stderr.splitlines() if line.startswith("outside: ")]
            if done.returncode != 0 and not said:
                said = [f"under the address sanitizer it ends with {done.returncode}: {done.stderr.strip()[:2000]}"]
            found.append([f"{entry['name']} {text}" for text in said])
    return found
