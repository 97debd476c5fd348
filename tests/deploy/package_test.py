"""The Debian package: built twice, looked at by lintian, installed, used and removed in a Debian 12 of its own.
usage: package_test.py BUILD"""

import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

from rooms import DEBIAN, ROOT, copy_sources, run_in

BUILD = pathlib.Path(sys.argv.pop(1))
VERSION = re.search(r"project\(gpu-worker VERSION (\S+)", (ROOT / "CMakeLists.txt").read_text())[1]
AS_USER = ("setpriv", "--reuid=gpu-worker", "--regid=gpu-worker", "--init-groups", "--", "env", "HOME=/var/lib/gpu-worker")


def run(*command, **options):
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, **options)
    assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
    return done.stdout


def pack(build):
    """What `cpack` makes of a build folder."""
    run("cpack", cwd=build)
    (package,) = build.glob(f"gpu-worker_{VERSION}-*.deb")
    return package


class PackageTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(cls.enterClassContext(tempfile.TemporaryDirectory()))
        cls.package = shutil.copy(pack(BUILD), cls.folder)

    def test_lintian_finds_nothing_wrong(self):
        done = subprocess.run(["lintian", "--allow-root", "--fail-on", "warning,error", self.package], capture_output=True,
                              text=True)
        self.assertEqual((done.returncode, done.stdout), (0, ""), done.stderr)

    def test_another_build_in_another_folder_gives_the_same_bytes(self):
        source = self.folder / "another/place"
        copy_sources(source)
        # There is no git that knows it.
        commit = re.search(r"(?m)^commit (.*)$", run(BUILD / "bin/gpu-worker", "version"))[1]
        run("cmake", "--preset", "release", f"-DGPU_WORKER_COMMIT={commit}", cwd=source)
        run("cmake", "--build", "--preset", "release", cwd=source)
        other = pack(source / "build/release")
        self.assertEqual(pathlib.Path(self.package).read_bytes(), other.read_bytes())

    def test_the_binaries_are_stripped_and_hardened(self):
        root = self.folder / "unpacked"
        run("dpkg-deb", "--extract", self.package, root)
        binary = root / "usr/bin/gpu-worker"
        for file in (binary, *root.glob("usr/share/gpu-worker/programs/*/*.so")):
            self.assertNotIn(".symtab", run("readelf", "--sections", "--wide", file), file)
            segments = run("readelf", "--segments", "--wide", file)
            self.assertIn("GNU_RELRO", segments, file)
            self.assertRegex(segments, r"GNU_STACK .* RW ", file)
            self.assertRegex(run("readelf", "--dynamic", file), r"BIND_NOW|Flags:.* NOW", file)
        self.assertRegex(run("readelf", "--dynamic", binary), r"FLAGS_1.* PIE")
        imported = run("readelf", "--dyn-syms", "--wide", binary)
        self.assertIn("__stack_chk_fail", imported)
        self.assertIn("__snprintf_chk", imported)

    def test_it_is_installed_used_removed_and_purged(self):
        root = self.folder / "root"
        root.mkdir()
        run("tar", "-C", root, "-xf", DEBIAN)
        shutil.copy("/etc/resolv.conf", root / "etc/resolv.conf")
        shutil.copy(self.package, root / "package.deb")

        def inside(*command):
            done = run_in(root, *command)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            return done.stdout + done.stderr

        inside("apt-get", "update")
        inside("apt-get", "install", "-y", "--no-install-recommends", "/package.deb")
        config = "/etc/gpu-worker/worker.yaml"
        self.assertEqual(inside(*AS_USER, "gpu-worker", "check", "--config", config), f"ok: {config}, 7 programs\n")
        self.assertIn(VERSION, inside("gpu-worker", "version"))
        done = inside(*AS_USER, "sh", "-c", f"""
            cd /var/lib/gpu-worker && gpu-worker submit --encode /usr/share/doc/gpu-worker/examples/saxpy.yaml >job &&
            exec gpu-worker run --driver cpu --config {config} --jobs job --results results""")
        self.assertIn("done: 1 jobs ok, 0 failed", done)
        self.assertIn(b"saxpy-by-hand", (root / "var/lib/gpu-worker/results").read_bytes())

        with open(root / "etc/gpu-worker/worker.yaml", "a") as file:
            file.write("# changed by the operator\n")
        inside("apt-get", "install", "-y", "--reinstall", "/package.deb")
        inside("dpkg", "--remove", "gpu-worker")
        self.assertIn("changed by the operator", (root / "etc/gpu-worker/worker.yaml").read_text())
        self.assertFalse((root / "usr/bin/gpu-worker").exists())
        inside("dpkg", "--purge", "gpu-worker")
        left = [path for path in ("etc/gpu-worker", "var/lib/gpu-worker", "usr/share/gpu-worker", "usr/share/doc/gpu-worker")
                if (root / path).exists()]
        self.assertEqual(left, [])


if __name__ == "__main__":
    unittest.main()
