"""`programs new` makes a folder with a kernel, its manifest and its test cases, which all work."""

from __future__ import annotations

import pathlib
import re

from .tools import KitError, made_aside

KERNEL = """\
/** y[i] = a * x[i]. The functions that a kernel has are listed at the top of kernel.h. */
#include "kernel.h"

BATCHED_KERNEL(NAME, (float)a, (const float *)x, (float *)y, (uint32_t)n) {
    uint32_t i = global_x();
    if (i < n) y[i] = a * x[i];
}
"""
MANIFEST = """\
name: NAME
description: y = a*x
entries:
  - name: NAME
    args: # in the kernel's order
      - {name: a, value: f32}
      - {name: x, buffer: in, type: FP32}
      - {name: y, buffer: out, type: FP32}
      - {name: n, value: u32, at_most: [x, y]} # a bound for every number that leads to memory
    block: [256]
    batched: NAME_batched # runs many jobs, and the instances of an array, in one launch
images:
  - {kind: ptx, file: NAME.ptx}
  - {kind: cpu, file: NAME.so}
"""
CASES = '''\
"""Test cases of NAME. `gpu-worker programs test` runs them."""
import numpy as np

TOLERANCE = 1e-6  # a result may differ by this much, plus this much of its size


def reference(a, x, y, n):
    """Computes with NumPy what the kernel must write into its buffers."""
    return {"y": np.float32(a) * x}


def cases():
    """Gives the arguments of each case, by their names in the manifest: a number for a value, an array for a buffer. The
    launch has a thread for each element of the largest buffer that the kernel writes; a case changes that with `_elements`
    (how many threads) or `_grid` (how many blocks: a list)."""
    for n in (1, 255, 256, 1000):
        yield {"a": 3.0, "x": np.arange(n, dtype=np.float32), "y": np.zeros(n, np.float32), "n": n}
'''
NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}")


def create(folder: pathlib.Path) -> None:
    name = folder.name
    if NAME.fullmatch(name) is None:
        raise KitError(f"'{name}' is no name for a kernel: use letters, digits and _")
    with made_aside(folder) as draft:
        for file, text in ((f"{name}.c", KERNEL), ("program.yaml", MANIFEST), ("cases.py", CASES)):
            (draft / file).write_text(text.replace("NAME", name))
    print(f"{folder}: {name}.c, program.yaml, cases.py\nnext: gpu-worker programs test {folder}")
