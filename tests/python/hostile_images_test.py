"""What `programs import` makes of images and folders that somebody else has made. usage: hostile_images_test.py BINARY"""

import os
import pathlib
import resource
import shutil
import struct
import subprocess
import sys
import tempfile
import unittest

BINARY = pathlib.Path(sys.argv.pop(1)).resolve()
CPU_S, MEMORY_BYTES = 20, 1 << 30  # an image of as many bytes takes a tenth of both


def limit():
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_S, CPU_S))
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))


def elf(sections, names):
    """A 64-bit ELF file with a section for each (offset of the name, offset, size); the last one has the names."""
    body = names
    heads = b"".join(struct.pack("<IIQQQQQIIQQ", name, 1, 0, 0, at, size, 0, 0, 0, 0, 0) for name, at, size in sections)
    head = b"\x7fELF\x02\x01\x01\x33\x07" + bytes(7) + struct.pack(
        "<HHIQQQIHHHHHH", 2, 190, 1, 0, 0, 64 + len(body), 90, 64, 0, 0, 64, len(sections), len(sections) - 1)
    return head + body + heads


class HostileImagesTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="gpu-worker-hostile-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def run_import(self, name, data, status=1, **environment):
        (self.folder / name).write_bytes(data if isinstance(data, bytes) else data.encode())
        done = subprocess.run([BINARY, "programs", "import", name], cwd=self.folder, capture_output=True, text=True,
                              env=os.environ | environment, preexec_fn=limit)
        said = done.stdout + done.stderr
        self.assertEqual(done.returncode, status, said[-2000:])
        self.assertNotIn("Traceback", said)
        if status != 0:
            self.assertEqual([path.name for path in self.folder.iterdir() if path.is_dir()], [], "nothing of it stays")
        return said

    def test_reading_ptx_takes_time_and_memory_as_its_size_does(self):
        size = 200_000
        harmless = {"kernels within kernels", "a statement without an end", "numbers without digits"}
        for what, text in {
                "comments that never end": "/*" * (size // 2),
                "heads that never end": ".entry x(" * (size // 9),
                "directives that never end": ".entry x()" * (size // 10),
                "kernels within kernels": ".entry x() {" * (size // 13) + "}" * (size // 13),
                "a long declaration": f".entry x(.param .u32 {'a' * size}!) {{ }}",
                "a long list of words": f".entry x(.param .u32 {'a ' * size}!) {{ }}",
                "a statement without an end": f".entry x(.param .u64 a) {{ {'ld.param.u64 %r1 ' * (size // 17)} }}",
                "many parameters": ".entry x(" + ",".join(f".param .u64 p{i}" for i in range(size // 40)) + ") {"
                                   + "".join(f"ld.param.u64 %rd{i}, [p{i}];" for i in range(size // 40)) + "}",
                "a number without an end": f".entry x() .reqntid {'9' * size} {{ }}",
                "numbers without digits": ".entry x() .reqntid ,, { } /*",
        }.items():
            with self.subTest(what):
                self.run_import("image.ptx", text, status=0 if what in harmless else 1)
                shutil.rmtree(self.folder / "image", ignore_errors=True)

    def test_reading_a_cubin_takes_time_and_memory_as_its_size_does(self):
        names = b"\0.text.k\0.nv.info.k\0.shstrtab\0" + b"a" * 1_000_000
        everything = (1, 64, len(names))
        for what, sections in {"sections that all hold everything": [(31 + i, 64, len(names)) for i in range(20_000)] + [everything],
                               "names without an end": [(31, 64, 1)] * 20_000 + [(20, 64, len(names))],
                               "many names for one list": [(9, 64, len(names))] * 2_000 + [(1, 64, 1)] * 2_000 + [everything]}.items():
            with self.subTest(what):
                self.run_import("image.cubin", elf(sections, names))

    def test_names_add_no_lines_to_the_manifest(self):
        for symbol in ("k\n  - name: injected", "k: {a: b}", "k #", "\x1b[2J", "k\u2028x", "\u00e9", "x" * 2000):
            with self.subTest(symbol):
                names = f"\0.text.{symbol}\0.shstrtab\0".encode()
                said = self.run_import("image.cubin", elf([(1, 64, 1), (names.index(b".shstrtab"), 64, len(names))], names))
                self.assertNotIn("\x1b", said)
                said = self.run_import("image.ptx", f".entry k(.param .u32 {symbol}[) {{ ret; }}")
                self.assertNotIn("\x1b", said)

    def test_a_pipe_is_no_image(self):
        os.mkfifo(self.folder / "pipe.ptx")
        done = subprocess.run([BINARY, "programs", "import", "pipe.ptx"], cwd=self.folder, capture_output=True, text=True,
                              timeout=120)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("pipe.ptx", done.stderr)

    def test_what_the_worker_refuses_leaves_nothing(self):
        said = self.run_import("image.ptx", ".version 7.0\n.target sm_70\n.entry k(" + ",".join(
            f".param .u32 p{i}" for i in range(200)) + ") { ret; }")
        self.assertIn("the worker refuses the program", said)
        self.run_import("image.ptx", ".version 7.0\n.target sm_70\n.entry k(.param .u32 p) { ret; }", status=0)

    def test_modules_of_the_folder_where_it_is_called_are_not_run(self):
        for module in ("gpu_worker_kit/__init__.py", "gpu_worker_kit/__main__.py", "dataclasses.py", "sitecustomize.py"):
            path = self.folder / module
            path.parent.mkdir(exist_ok=True)
            path.write_text("import sys\nsys.exit('a stranger has run')\n")
        for environment in ({}, {"PYTHONPATH": "."}, {"PYTHONPATH": str(self.folder)}, {"PYTHONHOME": str(self.folder)}):
            done = subprocess.run([BINARY, "programs", "import", "nowhere.ptx"], cwd=self.folder, capture_output=True,
                                  text=True, env=os.environ | environment)
            self.assertEqual(done.stderr, "gpu-worker programs import: nowhere.ptx: No such file or directory\n")


if __name__ == "__main__":
    unittest.main(verbosity=2)
