"""What `cmake --install` lays out, and that it works wherever it is put. usage: install_test.py BUILD"""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

BUILD = pathlib.Path(sys.argv.pop(1))
LAID_OUT = """\
bin/gpu-worker
include/gpu-worker/kernel.h
include/gpu-worker/kernel_atomic.h
include/gpu-worker/kernel_cpu.h
include/gpu-worker/kernel_functions.h
include/gpu-worker/kernel_half.h
include/gpu-worker/kernel_math.h
include/gpu-worker/kernel_random.h
include/gpu-worker/kernel_warp.h
include/gpu-worker/optimizer.h
lib/systemd/system/gpu-worker.service
lib/systemd/system/gpu-worker@.service
lib/sysusers.d/gpu-worker.conf
lib/tmpfiles.d/gpu-worker.conf
share/bash-completion/completions/gpu-worker
share/fish/vendor_completions.d/gpu-worker.fish
share/zsh/vendor-completions/_gpu-worker
share/doc/gpu-worker/LICENSE
share/doc/gpu-worker/README.md
share/doc/gpu-worker/SECURITY.md
share/doc/gpu-worker/changelog.gz
share/doc/gpu-worker/config/README.md
share/doc/gpu-worker/deploy/README.md
share/doc/gpu-worker/schemas/README.md
share/doc/gpu-worker/examples/saxpy.yaml
share/doc/gpu-worker/examples/worker.yaml
share/gpu-worker/observability/alerts.yaml
share/gpu-worker/observability/dashboard.json
share/gpu-worker/programs/saxpy/program.yaml
share/gpu-worker/programs/saxpy/saxpy.ptx
share/gpu-worker/programs/saxpy/saxpy.so
share/gpu-worker/programs/sep_cma_es/sep_cma_es.so
share/man/man1/gpu-worker.1.gz
share/man/man5/gpu-worker.yaml.5.gz
""".splitlines()


def run(*command, **options):
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=240, **options)


class InstallTest(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))

    def install(self, *options, **environment):
        run("cmake", "--install", BUILD, *options, env={"PATH": "/usr/bin:/bin", **environment})

    def check(self, prefix):
        """The worker there reads the example that was installed with it, and finds its programs."""
        config = prefix / "share/doc/gpu-worker/examples/worker.yaml"
        done = run(prefix / "bin/gpu-worker", "check", "--config", config, env={"STATE_DIRECTORY": str(self.folder)})
        self.assertEqual(done.stdout, f"ok: {config}, 7 programs\n")

    def test_everything_stands_in_its_place_below_the_prefix_and_nothing_outside(self):
        prefix = self.folder / "prefix"
        self.install("--prefix", prefix)
        found = {str(path.relative_to(prefix)) for path in prefix.rglob("*") if path.is_file()}
        self.assertEqual(set(LAID_OUT) - found, set())
        self.assertEqual({path.split("/")[0] for path in found}, {"bin", "include", "lib", "share"})
        self.check(prefix)
        unit = (prefix / "lib/systemd/system/gpu-worker.service").read_text()
        self.assertIn(f"ExecStart={prefix}/bin/gpu-worker run --config /etc/gpu-worker/worker.yaml\n", unit)

    def test_a_tree_for_a_package_names_its_final_place(self):
        self.install("--prefix", "/usr", DESTDIR=str(self.folder))
        unit = (self.folder / "usr/lib/systemd/system/gpu-worker@.service").read_text()
        self.assertIn("ExecStart=/usr/bin/gpu-worker run --config /etc/gpu-worker/%i.yaml\n", unit)
        self.assertNotIn(str(self.folder), unit)
        self.check(self.folder / "usr")

    def test_a_prefix_that_was_moved_works(self):
        self.install("--prefix", self.folder / "first")
        shutil.move(self.folder / "first", self.folder / "second")
        self.check(self.folder / "second")

    def test_the_headers_are_enough_for_a_kernel(self):
        self.install("--prefix", self.folder)
        source = self.folder / "twice.c"
        source.write_text('#include "kernel.h"\nKERNEL(twice, (float *)x) { x[global_x()] *= 2.0f; }\n')
        run("cc", "-shared", "-fPIC", "-I", self.folder / "include/gpu-worker", "-o", self.folder / "twice.so", source)

    def test_the_kit_works_outside_the_source(self):
        self.install("--prefix", self.folder / "there")
        worker, work = self.folder / "there/bin/gpu-worker", self.folder / "work"
        work.mkdir()
        run(worker, "programs", "new", "twice", cwd=work)
        done = run(worker, "programs", "test", "twice", cwd=work, env=os.environ | {
            "PATH": f"{pathlib.Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"})  # its Python has NumPy
        self.assertIn("twice on cpu: 4 of 4 cases pass\n", done.stdout)


if __name__ == "__main__":
    unittest.main()
