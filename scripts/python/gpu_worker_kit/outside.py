"""Runs kernels on the CPU under the address sanitizer, each buffer in a block of just its size, and says which buffer they
read or write outside of, and where."""

from __future__ import annotations

import math
import os
import pathlib
import struct
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from typing import Any

from .build import c_compiler
from .tools import headers, run

HARNESS = pathlib.Path(__file__).with_name("outside.c")
FLAGS = ["-x", "c", "-std=gnu11", "-g", "-O1", "-ffp-contract=off", "-fno-omit-frame-pointer", "-DKERNEL_ONE_BLOCK", "-fsanitize=address", "-pthread"]
OPTIONS = "detect_leaks=0:redzone=2048:max_redzone=2048:symbolize=0:print_stats=0:exitcode=99"
VALUES = {"u32": "<I", "i32": "<i", "u64": "<Q", "i64": "<q", "f32": "<f", "f64": "<d"}

Run = tuple[Mapping[str, Any], Mapping[str, Any], Mapping[str, Any], Mapping[str, Any]]


def three(extents: Sequence[int]) -> list[int]:
    return [*extents, 1, 1][:3]


def argument(arg: Mapping[str, Any], case: Mapping[str, Any], buffers: Mapping[str, Any], in_buffer: bool) -> bytes:
    """As the harness reads it: is it a buffer, its name, the bytes of an element, the bytes."""
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


def written(run_of: Run) -> bytes:
    entry, case, buffers, shape = run_of
    block = three(shape.get("block", entry["block"]))
    grid = three(shape["grid"]) if "grid" in shape else [-(-shape["elements"] // math.prod(block)), 1, 1]
    shared = shape.get("shared_bytes", entry["shared_bytes"])
    whole = struct.pack("<8I", *grid, *block, shared, len(entry["args"]))
    return whole + b"".join(argument(arg, case, buffers, bool(entry.get("params_in_buffer"))) for arg in entry["args"])


def find(source: pathlib.Path, runs: Sequence[Run]) -> list[list[str]]:
    """For each run, what it does outside of its buffers. Cooperative entries wait for all blocks of the grid at once, and are
    not run."""
    found: list[list[str]] = []
    with tempfile.TemporaryDirectory(prefix="gpu-worker-outside-") as name:
        room = pathlib.Path(name)
        for number, run_of in enumerate(runs):
            entry = run_of[0]
            harness = room / entry["symbol"]
            if entry["cooperative"]:
                found.append([])
                continue
            if not harness.exists():
                run(c_compiler(), *FLAGS, f"-DKERNEL_INFO=kernel_{entry['symbol']}", "-I", headers(), "-o", harness, source, HARNESS)
            (room / "case").write_bytes(written(run_of))
            done = subprocess.run([str(harness), str(room / "case")], capture_output=True, text=True, errors="replace",
                                  env=os.environ | {"ASAN_OPTIONS": OPTIONS})
            said = [line.removeprefix("outside: ") for line in done.stderr.splitlines() if line.startswith("outside: ")]
            if done.returncode != 0 and not said:
                said = [f"under the address sanitizer it ends with {done.returncode}: {done.stderr.strip()[:2000]}"]
            found.append([f"{entry['name']} {text}" for text in said])
    return found
