"""The kit for programs, as a person types it. usage: kit_test.py BINARY"""

import json
import os
import pathlib
import re
import struct
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "scripts/python"))
from gpu_worker_kit import draft
from gpu_worker_kit.tools import KitError

BINARY = pathlib.Path(sys.argv.pop(1)).resolve()
PROGRAMS = BINARY.parents[1] / "share/gpu-worker/programs"

PATH = f"{pathlib.Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"  # its Python has NumPy

# In the shape of what Triton and Numba write: mangled names, blocks, parameters that nothing loads.
TRITON = """
.version 8.4
.target sm_90a
.address_size 64
.visible .entry add_kernel(
    .param .u64 .ptr .global .align 1 add_kernel_param_0,
    .param .u64 .ptr .global .align 1 add_kernel_param_1,
    .param .u32 add_kernel_param_2,
    .param .u64 .ptr .global .align 1 add_kernel_param_3,
    .param .u64 .ptr .global .align 1 add_kernel_param_4
)
.reqntid 128, 1, 1
{
    .reg .b64 %rd<9>;
    ld.param.b64 %rd1, [add_kernel_param_0];
    ld.param.b64 %rd2, [add_kernel_param_1];
    ld.param.b32 %r1, [add_kernel_param_2];
    ret;
}
"""
NUMBA = """
.version 8.0
.target sm_75
.address_size 64
.visible .func (.param .b32 func_retval0) helper(.param .b64 helper_param_0) { ret; }
.visible .entry _ZN8__main__5scaleB2v1B94cw51cXTLSUwv1sDUaKthrqVjs7qDmDxkbyp1E8CPointerIfEfj(
    .param .b64 p_param_0,
    .param .b32 p_param_1, /* a comment, with .entry x( in it */
    .param .b32 p_param_2,
    .param .align 8 .b8 p_param_3[24]
)
{
    ld.param.u64 %rd1, [p_param_0];
    ld.param.f32 %f1, [p_param_1];
    ld.param.u32 %r1, [p_param_2];
    cvta.to.global.u64 %rd2, %rd1;
    { ret; }
}
"""


# A call of each function of kernel.h, of a thread's number `i` and its element `v`. `m` is memory that the block shares.
CALLS = {
    **{name: f"{name}(v)" for name in ("exp_f32", "log_f32", "sqrt_f32", "sin_f32", "cos_f32", "tanh_f32", "erf_f32", "abs_f32",
                                       "bits_of_f32", "f16_of_f32", "bf16_of_f32", "warp_sum_f32")},
    **{name: f"{name}(i)" for name in ("f32_of_bits", "uniform_f32")},
    **{name: f"{name}((uint16_t)i)" for name in ("f32_of_f16", "f32_of_bf16")},
    **{name: f"{name}(v, v)" for name in ("pow_f32", "min_f32", "max_f32")},
    **{name: f"{name}(i, 7)" for name in ("min_u32", "max_u32", "normal_f32", "warp_shuffle_u32")},
    **{name: f"{name}((int32_t)i, -7)" for name in ("min_i32", "max_i32")},
    **{name: f"{name}(m, i)" for name in ("atomic_add_u32", "atomic_exchange_u32", "atomic_min_u32", "atomic_max_u32")},
    **{f"{name}_{axis}": f"{name}_{axis}()" for name in ("thread", "block", "block_dim", "grid_dim") for axis in "xyz"},
    **{name: f"{name}()" for name in ("global_x", "warp_lane", "shared_bytes")},
    **{name: f"({name}(), 0)" for name in ("barrier", "memory_fence")},
    "fma_f32": "fma_f32(v, v, v)", "power_of_two_f32": "power_of_two_f32((int32_t)i & 7)", "atomic_load_u32": "atomic_load_u32(m)",
    "atomic_compare_exchange_u32": "atomic_compare_exchange_u32(m, i, 1)", "atomic_add_f32": "atomic_add_f32((float *)m, v)",
    "philox4x32": "philox4x32(i, i, i).word[0]", "warp_shuffle_f32": "warp_shuffle_f32(v, 7)",
    "is_live": "is_live(m)", "end_round": "(end_round(m, 1, false, 0), 0)",
    "block_sum_f32": "(block_sum_f32((float *)m), 0)", "grid_barrier": "(grid_barrier(word), 0)",
}


def functions_of_kernel_h():
    found = set()
    for path in (BINARY.parents[1] / "include/gpu-worker").glob("kernel*.h"):
        text = path.read_text()
        found |= set(re.findall(r"^DEVICE [\w ]+?(\w+)\(", text, re.M)) | set(re.findall(r"^ +X\((\w+), \w+\.", text, re.M))
    return {name for name in found if not name.startswith("kernel_")}


def cubin(symbol, sizes, flags, abi):
    """A file with what a cubin says of one kernel."""
    info = b"".join(struct.pack("<BBHIHHI", 0x04, 0x17, 12, 0, ordinal, 8 * ordinal, size << 18)
                    for ordinal, size in reversed(list(enumerate(sizes)))) + struct.pack("<BBHBBH3I", 0x03, 0x19, 24, 0x04, 0x10, 12, 64, 2, 1)
    names = f"\0.text.{symbol}\0.nv.info.{symbol}\0.shstrtab\0".encode()
    at = 64
    heads = [struct.pack("<IIQQQQ16x8x", 0, 0, 0, 0, 0, 0)]
    body = b""
    for name, data in ((f".text.{symbol}", b"\0" * 16), (f".nv.info.{symbol}", info), (".shstrtab", names)):
        heads.append(struct.pack("<IIQQQQ", names.index(name.encode()), 1, 0, 0, at + len(body), len(data)) + b"\0" * 24)
        body += data
    head = b"\x7fELF\x02\x01\x01" + bytes(abi) + b"\0" * 7
    return head + struct.pack("<HHIQQQIHHHHHH", 2, 190, 1, 0, 0, at + len(body), flags, 64, 0, 0, 64, 4, 3) + body + b"".join(heads)


class Kit(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="gpu-worker-kit-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def kit(self, *words, status=0, binary=BINARY, **variables):
        done = subprocess.run([binary, "programs", *words], cwd=self.folder, capture_output=True, text=True, timeout=280,
                              env={**os.environ, "PATH": PATH, "XDG_STATE_HOME": str(self.folder / "state"), **variables})
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        return done.stdout + done.stderr

    def change(self, file, old, new):
        path = self.folder / file
        text = path.read_text()
        self.assertIn(old, text)
        path.write_text(text.replace(old, new))

    def make(self, name="mine"):
        self.kit("new", name)
        return self.folder / name


class BuildTest(Kit):
    def test_a_new_program_builds_and_passes_its_cases(self):
        self.assertIn("next: gpu-worker programs test mine\n", self.kit("new", "mine"))
        self.assertEqual(self.kit("build", "mine"), "built mine: ptx, cpu\n")
        self.assertEqual(self.kit("test", "mine"), "built mine: ptx, cpu\nmine on cpu: 4 of 4 cases pass\n")
        self.assertIn("entry mine:", self.kit("--dir", str(self.folder)))
        self.assertIn("mine exists; choose another name", self.kit("new", "mine", status=1))
        self.assertIn("'1x' is no name for a kernel", self.kit("new", "1x", status=1))

    def test_every_function_of_kernel_h_is_built_and_tested_with_either_compiler(self):
        self.assertEqual(set(CALLS), functions_of_kernel_h())
        self.make()
        kept = [f"    kept += (float){call};" for name, call in CALLS.items() if name != "grid_barrier"]
        self.change("mine/mine.c", "    if (i < n) y[i] = a * x[i];\n", "\n".join([
            "    SHARED(uint32_t, m);", "    float v = i < n ? x[i] : 1.0f, kept = 0.0f;", "    m[thread_x()] = i;", "    barrier();",
            *kept, "    if (i < n) y[i] = kept == 12345.0f ? kept : a * x[i];\n"]))
        with open(self.folder / "mine/mine.c", "a") as source:
            source.write("KERNEL(together, (uint32_t *)word) { grid_barrier(word); }\n")
        self.change("mine/program.yaml", "    block: [256]\n", "    block: [256]\n    shared_bytes: 1024\n")
        self.change("mine/program.yaml", "images:", """  - name: together
    args: [{name: word, buffer: inout, type: UINT32, at_least: 1}]
    block: [32]
    requires: {cooperative: true}
images:""")
        self.change("mine/cases.py", "y, n):", "y=None, n=0):")
        self.change("mine/cases.py", "reference(a, x,", "reference(a=0, x=None, word=None,")
        self.change("mine/cases.py", "    return {", "    if word is not None:\n        return {}\n    return {")
        self.change("mine/cases.py", "    for n in", """    yield {"_entry": "together", "_grid": [2], "word": np.zeros(1, np.uint32)}\n    for n in""")
        for compiler in ("gcc", "clang"):
            with self.subTest(compiler):
                self.assertIn("mine on cpu: 5 of 5 cases pass\n", self.kit("test", "mine", CC=compiler))

    def test_a_wrong_number_is_shown_beside_that_of_the_reference(self):
        self.make()
        self.change("mine/mine.c", "y[i] = a * x[i]", "y[i] = a * x[i] + (i == 3 ? 1.0f : 0.0f)")
        said = self.kit("test", "mine", status=1)
        self.assertIn("case 2: y[3] is 10.0, and the reference says 9.0 (1 of 255 differ)\n", said)
        self.assertIn("mine on cpu: 1 of 4 cases pass\n", said)

    def test_a_write_past_the_end_is_named_by_the_guard_and_by_the_sanitizer(self):
        self.make()
        self.change("mine/mine.c", "y[i] = a * x[i]", "y[i + 1] = a * x[i]")
        said = self.kit("test", "mine", status=1)
        self.assertIn("case 2: mine writes y[255], and y has 255 elements\n", said)
        self.assertIn("case 3: mine writes y[256], and y has 256 elements (block 0, 0, 0, thread 255, 0, 0)\n", said)

    def test_it_leaves_nothing_beside_itself(self):
        self.make()
        self.kit("test", "mine")
        self.assertEqual(sorted(path.name for path in (self.folder / "mine").iterdir()),
                         ["cases.py", "mine.c", "mine.ptx", "mine.so", "program.yaml"])

    def test_a_program_beside_it_may_be_half_written(self):
        self.make("half")
        self.make()
        self.assertIn("mine on cpu: 4 of 4 cases pass\n", self.kit("test", "mine"))

    def test_an_interrupt_ends_it_without_a_traceback(self):
        folder = self.make()
        (folder / "cases.py").write_text("import os, signal\nos.kill(os.getpid(), signal.SIGINT)\n")
        self.assertEqual(self.kit("test", "mine", status=130), "built mine: ptx, cpu\n")

    def test_a_build_that_the_worker_refuses_leaves_the_images_that_it_took(self):
        folder = self.make()
        self.kit("build", "mine")
        before = {name: (folder / name).read_bytes() for name in ("mine.ptx", "mine.so")}
        self.change("mine/mine.c", "a * x[i]", "2.0f * a * x[i]")
        self.change("mine/program.yaml", "value: f32", "value: f64")
        self.assertIn("argument 'a' is f64", self.kit("build", "mine", status=1))
        self.assertEqual({name: (folder / name).read_bytes() for name in before}, before)
        self.change("mine/program.yaml", "value: f64", "value: f32")
        self.kit("build", "mine")
        self.assertNotEqual({name: (folder / name).read_bytes() for name in before}, before)
        self.assertEqual(sorted(path.name for path in folder.iterdir()),
                         ["cases.py", "mine.c", "mine.ptx", "mine.so", "program.yaml"])

    def test_mistakes_are_said_with_what_to_do(self):
        self.assertIn("there is no", self.kit("build", ".", status=1))
        folder = self.make()
        self.assertIn("cannot run /nowhere: No such file", self.kit("build", "mine", "--ptx-compiler", "/nowhere", status=1))
        self.change("mine/mine.c", "a * x[i]", "a * sinf(x[i])")
        self.kit("build", "mine", status=1)
        self.change("mine/mine.c", "sinf(", "(")
        self.change("mine/program.yaml", "value: f32", "value: f64")
        said = self.kit("build", "mine", status=1)
        self.assertIn("the worker refuses the program:\n", said)
        self.assertIn("argument 'a' is f64", said)
        self.change("mine/program.yaml", "value: f64", "value: f32")
        self.change("mine/cases.py", '"n": n}', '"m": n}')
        self.assertIn("a case has the arguments ['a', 'm', 'x', 'y'], and mine takes ['a', 'n', 'x', 'y']",
                      self.kit("test", "mine", status=1))
        (folder / "cases.py").unlink()
        self.assertIn("cases.py; gpu-worker programs new shows", self.kit("test", "mine", status=1))
        (folder / "program.yaml").write_bytes(b"name: \xff")
        self.assertEqual(self.kit("build", "mine", status=1), "gpu-worker programs build: mine/program.yaml is no text in UTF-8\n")
        (folder / "program.yaml").unlink()
        self.assertIn("there is no mine/program.yaml; gpu-worker programs new shows", self.kit("build", "mine", status=1))
        (self.folder / "file").write_text("")
        self.assertEqual(self.kit("new", "file/mine", status=1), "gpu-worker programs new: file/mine: Not a directory\n")


class MoreBuildsTest(Kit):
    """Of programs that are larger, or wrong in other ways: each is compiled anew, several times."""

    def test_a_read_outside_is_named_by_the_sanitizer(self):
        self.make()
        self.change("mine/mine.c", "a * x[i]", "(a * x[i] + 0.0f * x[i + 1])")
        self.assertIn("case 1: mine reads x[1], and x has 1 elements (block 0, 0, 0, thread 0, 0, 0)\n",
                      self.kit("test", "mine", status=1))
        self.change("mine/mine.c", "x[i + 1]", "x[(int32_t)i - 2]")
        self.assertIn("mine reads x[-", self.kit("test", "mine", status=1))

    def test_a_batched_kernel_that_takes_the_row_of_another_job_is_named(self):
        self.make()
        self.change("mine/mine.c", "BATCHED_KERNEL(mine,", """KERNEL(mine_batched, (float **)rows, (uint32_t)jobs) {
    if (thread_x() == 0 && jobs > 0) rows[2][0] = 3.0f;
}

KERNEL(mine,""")
        self.assertRegex(self.kit("test", "mine", status=1),
                         r"case 1: as an array job, mine leaves other bytes in y than alone \(instance \d\): look at its batched")

    def test_cases_may_be_larger_than_a_message_of_kafka(self):
        self.make()
        self.change("mine/cases.py", "(1, 255, 256, 1000)", "(300000,)")
        self.assertIn("mine on cpu: 1 of 1 cases pass\n", self.kit("test", "mine"))

    def test_a_write_into_an_input_is_named(self):
        self.make()
        self.change("mine/mine.c", "y[i] = a * x[i];", "{ y[i] = a * x[i]; ((float *)(uintptr_t)x)[i] = 7.0f; }")
        self.assertIn("case 1: mine writes x[0], and the manifest says `buffer: in`\n", self.kit("test", "mine", status=1))

    def test_shared_memory_barriers_and_several_entries_are_tested_too(self):
        folder = self.make("turn")
        (folder / "turn.c").write_text("""#include "kernel.h"
KERNEL(turn, (uint32_t *)data) {
    SHARED(uint32_t, turned);
    turned[block_dim_x() - 1 - thread_x()] = data[global_x()];
    barrier();
    data[global_x()] = turned[thread_x()];
}
KERNEL(shifted, (uint32_t *)data, (uint64_t)by) { if (thread_y() == 0) data[global_x()] += (uint32_t)by; }
""")
        (folder / "program.yaml").write_text("""name: turn
entries:
  - {name: turn, args: [{name: data, buffer: inout, type: UINT32}], block: [32, 2], shared_bytes: 128}
  - {name: shifted, args: [{name: data, buffer: inout, type: UINT32}, {name: by, value: u64}], block: [16, 2]}
images: [{kind: cpu, file: turn.so}]
""")
        (folder / "cases.py").write_text("""import numpy as np
def reference(data, by=None):
    return {"data": data + np.uint32(by) if by is not None else data.reshape(-1, 32)[:, ::-1].ravel()}
def cases():
    yield {"_grid": [3], "_block": [32], "data": np.arange(96, dtype=np.uint32)}
    yield {"_entry": "shifted", "data": np.arange(48, dtype=np.uint32), "by": 5}
""")
        self.assertIn("turn on cpu: 2 of 2 cases pass\n", self.kit("test", "turn"))
        self.change("turn/turn.c", "turned[block_dim_x() - 1 -", "turned[block_dim_x() -")
        self.assertRegex(self.kit("test", "turn", status=1),
                         r"case 1: turn writes shared memory\[12\d\], and shared memory has 128 elements")
        self.change("turn/turn.c", "turned[block_dim_x() -", "turned[block_dim_x() - 1 -")
        self.change("turn/turn.c", "data[global_x()] += ", "data[global_x() + 1] += ")  # elements are threads along x
        self.assertIn("shifted reads data[48], and data has 48 elements (block 2, 0, 0, thread 15, 0, 0)",
                      self.kit("test", "turn", status=1))

    def test_what_a_cooperative_kernel_does_outside_of_its_buffers_is_named(self):
        folder = self.make("turn")
        (folder / "turn.c").write_text("""#include "kernel.h"
KERNEL(turn, (uint32_t *)y, (uint32_t *)scratch, (uint32_t *)word, (uint32_t)n) {
    SHARED(uint32_t, first);
    if (thread_x() == 0) first[0] = block_x() * block_dim_x();
    barrier();
    uint32_t i = first[0] + thread_x();
    if (i < n) scratch[i] = y[i];
    grid_barrier(word);
    if (i < n) y[n - 1 - i] = scratch[i];
}
""")
        (folder / "program.yaml").write_text("""name: turn
entries:
  - name: turn
    args:
      - {name: y, buffer: inout, type: UINT32}
      - {name: scratch, buffer: inout, type: UINT32}
      - {name: word, buffer: inout, type: UINT32, at_least: 1}
      - {name: n, value: u32, at_most: [y, scratch]}
    block: [64]
    shared_bytes: 4
    requires: {cooperative: true}
images: [{kind: cpu, file: turn.so}]
""")
        (folder / "cases.py").write_text("""import numpy as np
def reference(y, scratch, word, n):
    return {"y": y[::-1]}
def cases():
    for n in (1, 63, 500):
        yield {"y": np.arange(n, dtype="<u4"), "scratch": np.zeros(n, "<u4"), "word": np.zeros(1, "<u4"), "n": n}
""")
        self.assertEqual("built turn: cpu\nturn on cpu: 3 of 3 cases pass\n", self.kit("test", "turn"))
        self.change("turn/turn.c", "y[n - 1 - i] =", "y[n - i] =")
        self.assertIn("case 3: turn writes y[500], and y has 500 elements (block 0, 0, 0, thread 0, 0, 0)\n",
                      self.kit("test", "turn", status=1))
        self.change("turn/turn.c", "y[n - i] =", "y[n - 1 - i] =")
        self.change("turn/turn.c", "first[0] =", "first[1] =")
        self.assertIn("writes shared memory[4], and shared memory has 4 elements (block ", self.kit("test", "turn", status=1))
        self.change("turn/turn.c", "first[1] =", "first[0] =")
        self.change("turn/cases.py", "500)", "1100)")
        self.assertIn("case 3: not run under the address sanitizer, which takes at most 1024 threads in a cooperative grid, "
                      "and this one has 1152\nturn on cpu: 3 of 3 cases pass\n", self.kit("test", "turn"))

class ImportTest(Kit):
    def test_what_it_imports_from_ptx_the_worker_takes(self):
        for program in ("saxpy", "logreg_adam", "bfs_csr", "reduce_sum"):
            self.kit("import", PROGRAMS / program / f"{program}.ptx", "--name", f"my_{program}")
        manifest = (self.folder / "my_saxpy/program.yaml").read_text()
        self.assertIn("""\
  - name: saxpy
    args:
      - {name: arg0, value: f32}
      - {name: arg1, buffer: inout} # in, out, inout or static
      - {name: arg2, buffer: inout} # in, out, inout or static
      - {name: arg3, value: u32}
    block: [256]
    batched: saxpy_batched
images:
""", manifest)
        self.assertIn("exists; choose another name", self.kit("import", PROGRAMS / "saxpy/saxpy.ptx", "--name", "my_saxpy", status=1))

    def test_what_cannot_be_imported_is_named_once(self):
        self.assertEqual(self.kit("import", "nowhere.ptx", status=1).strip(),
                         "gpu-worker programs import: nowhere.ptx: No such file or directory")
        (self.folder / "bytes.ptx").write_bytes(b"\xff\xfe")
        self.assertIn("bytes.ptx is no text", self.kit("import", "bytes.ptx", status=1))

    def test_hidden_parameters_and_mangled_names_are_imported(self):
        (self.folder / "add.ptx").write_text(TRITON)
        self.kit("import", "add.ptx")
        self.assertEqual((self.folder / "add/program.yaml").read_text(), """\
name: add
description: imported; say here what it does
entries:
  - name: add_kernel
    args:
      - {name: arg0, buffer: inout} # in, out, inout or static
      - {name: arg1, buffer: inout} # in, out, inout or static
      - {name: arg2, value: u32}
      - {name: arg3, value: u64} # the kernel does not use it: give it 0
      - {name: arg4, value: u64} # the kernel does not use it: give it 0
    block: [128, 1, 1]
images:
  - {kind: ptx, file: add.ptx}
""")
        (self.folder / "numba.ptx").write_text(NUMBA)
        self.assertIn("program.yaml: scale\n", self.kit("import", "numba.ptx", "--name", "scaling"))
        text = (self.folder / "scaling/program.yaml").read_text()
        self.assertRegex(text, r"  - name: scale\n    symbol: _ZN8__main__5scale\w+\n")
        self.assertEqual(re.findall(r"(?:value|buffer): \w+", text),
                         ["buffer: inout", "value: f32", "value: u32", "value: words"])

    def test_what_it_imports_has_the_buffers_and_numbers_of_the_manifest(self):
        def kinds(entry):
            return [re.sub("^i(32|64)$", r"u\1", arg["type"]) if arg["role"] == "value" else "buffer" for arg in entry["args"]]

        for program in json.loads(self.kit("--json", "--dir", PROGRAMS)):
            name = program["name"]
            self.kit("import", PROGRAMS / name / f"{name}.ptx", "--dir", "imported")
            (drafted,) = [found for found in json.loads(self.kit("--json", "--dir", "imported")) if found["name"] == name]
            entries = {entry["symbol"]: entry for entry in drafted["entries"]}
            for entry in program["entries"]:
                self.assertEqual(kinds(entry), kinds(entries[entry["symbol"]]), (name, entry["name"]))

    def test_a_pointer_is_told_from_a_stride_and_from_an_offset(self):
        (self.folder / "rows.ptx").write_text("""
.visible .entry rows(.param .u64 data, .param .u64 stride, .param .u64 to, .param .u64 offset) {
    ld.param.u64 %rd1, [data];
    ld.param.u64 %rd2, [stride];
    ld.param.u64 %rd3, [to];
    ld.param.u64 %rd4, [offset];
    mul.lo.s64 %rd5, %rd9, %rd2;
    add.s64 %rd6, %rd5, %rd1;
    ld.f32 %f1, [%rd6];
    cvta.to.global.u64 %rd7, %rd3;
    add.s64 %rd8, %rd7, %rd4;
    st.global.f32 [%rd8], %f1;
    ret;
}
""")
        self.kit("import", "rows.ptx")
        text = (self.folder / "rows/program.yaml").read_text()
        self.assertEqual(re.findall(r"(?:value|buffer): \w+", text), ["buffer: inout", "value: u64", "buffer: inout", "value: u64"])

    def test_a_kernel_that_no_program_can_have_is_left_out(self):
        (self.folder / "two.ptx").write_text(".entry no(.param .u8 x) { ret; } .entry yes(.param .u32 x) { ret; }")
        said = self.kit("import", "two.ptx")
        self.assertIn("no is left out: the parameter x is a .u8; a program takes", said)
        self.assertIn("two/program.yaml: yes\n", said)

    def test_a_cubin_is_imported(self):
        for name, flags, abi, architecture in (("old", 0x46055A, b"\x33\x07", "9.0"), ("new", 0x6006402, b"\x41\x08", "10.0")):
            (self.folder / f"{name}.cubin").write_bytes(cubin("_Z5scalefPfj", [4, 8, 16], flags, abi))
            self.kit("import", f"{name}.cubin")
            text = (self.folder / name / "program.yaml").read_text()
            self.assertIn("  - name: scale\n    symbol: _Z5scalefPfj\n", text)
            self.assertIn(f"{{kind: cubin, file: {name}.cubin, architecture: {architecture}}}", text)
            self.assertIn("value: words, count: 4", text)
            self.assertIn("    block: [64, 2, 1]\n", text)

    def test_what_is_no_image_is_refused(self):
        whole = cubin("k", [8], 90, b"\x33\x07")
        for name, data, said in (("a.ptx", b".version 6.0\n", "there is no kernel in it"),
                                 ("b.ptx", b"\xff\xfe", "b.ptx is no text"),
                                 ("c.cubin", b"text", "it is no cubin"), ("d.cubin", whole[:100], "damaged"),
                                 ("g.cubin", whole[:40] + b"\xff" * 8 + whole[48:], "damaged"),
                                 ("e.ptx", b".entry k(.param .u8 x) { ret; }", "the parameter x is a .u8"),
                                 ("f.ptx", b".entry k(.param .u32 x) { ", "ends within a kernel"),
                                 ("h.ptx", b".entry k(.param .b x[8]) { ret; }", "cannot be read")):
            (self.folder / name).write_bytes(data)
            self.assertIn(said, self.kit("import", name, status=1), name)
            self.assertFalse((self.folder / name[0]).exists())

    def test_a_cubin_that_is_cut_anywhere_is_refused(self):
        whole = cubin("k", [8], 90, b"\x33\x07")
        for size in range(64, len(whole) - 24):  # the rest of the last section's head says nothing
            with self.assertRaises(KitError, msg=f"{size} bytes"):
                draft.kernels_of_cubin(whole[:size])


if __name__ == "__main__":
    unittest.main(verbosity=2)
