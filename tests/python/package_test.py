#!/usr/bin/env python3
"""The Python client as a package: what pip installs is whole and typed, and its text is Python 3.9."""

import ast
import doctest
import importlib
import os
import pathlib
import pkgutil
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
SOURCE = ROOT / "scripts/python"
TOOLS = ROOT / "build/deps/types/bin/python3"
OLDEST = (3, 9)
PACKAGES = ("gpu_worker", "gpu_worker_kit")

USER = """
import asyncio
import gpu_worker as gw
import numpy as np

async def run(client: gw.Client) -> None:
    future = client.program("saxpy")(a=2, x=np.zeros(3, np.float32))
    arrays = await asyncio.wrap_future(future)
    reveal_type(future.result(timeout=3)["y"].shape)
    reveal_type(gw.JobFailed({}).code)
"""


class Package(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.cache = pathlib.Path(folder.name)  # of what mypy knows of NumPy

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def run_tool(self, *command, **options):
        if not TOOLS.exists():
            self.skipTest("scripts/setup types installs what this takes")
        ran = subprocess.run([TOOLS, *command], capture_output=True, text=True, timeout=250, **options)
        self.assertEqual(0, ran.returncode, ran.stdout + ran.stderr)
        return ran.stdout

    def test_what_pip_installs_is_whole_and_tells_types_to_who_uses_it(self):
        source, installed = self.folder / "source", self.folder / "installed"
        shutil.copytree(SOURCE, source, ignore=shutil.ignore_patterns("build", "*.egg-info", "__pycache__"))
        self.run_tool("-m", "pip", "install", "--quiet", "--no-deps", "--no-build-isolation", "--no-index",
                      "--disable-pip-version-check", "--target", installed, source)
        for package in PACKAGES:
            ours = {path.name for path in (SOURCE / package).iterdir() if path.is_file()}
            self.assertEqual(ours, {path.name for path in (installed / package).iterdir() if path.is_file()})
        (self.folder / "user.py").write_text(USER)
        said = self.run_tool("-m", "mypy", "--strict", "--python-executable", sys.executable, "--cache-dir",
                             self.cache, "user.py", cwd=self.folder,
                             env=os.environ | {"MYPYPATH": str(installed)})
        self.assertIn("tuple[Any, ...]", said)
        self.assertIn('str"', said)

    def test_its_own_types_are_strict(self):
        self.run_tool("-m", "mypy", "--strict", "--python-executable", sys.executable, "--cache-dir",
                      self.cache, "--config-file", SOURCE / "pyproject.toml",
                      *(SOURCE / package for package in PACKAGES))

    def test_its_text_is_that_of_the_oldest_python(self):
        for path in (path for package in PACKAGES for path in (SOURCE / package).glob("*.py")):
            ast.parse(path.read_text(), path.name, feature_version=OLDEST)

    def test_the_examples_in_docstrings_print_what_they_say(self):
        import gpu_worker

        count = 0
        for module in pkgutil.iter_modules(gpu_worker.__path__):
            results = doctest.testmod(importlib.import_module(f"gpu_worker.{module.name}"))
            self.assertEqual(0, results.failed)
            count += results.attempted
        self.assertGreater(count, 2)


if __name__ == "__main__":
    unittest.main()
