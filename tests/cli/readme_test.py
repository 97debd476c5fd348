"""config/README.md's configuration table is what the binary prints, and it takes the configurations beside it.
usage: readme_test.py BINARY README"""

import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

BINARY, README = sys.argv[1], pathlib.Path(sys.argv[2])
sys.argv[1:] = []


class Readme(unittest.TestCase):
    def assert_quoted(self, *command):
        printed = subprocess.run([BINARY, *command], check=True, capture_output=True, text=True).stdout.strip()
        self.assertTrue(printed in README.read_text(), f"paste the output of gpu-worker {' '.join(command)} into config/README.md")

    def test_the_configuration_table_is_the_generated_one(self):
        self.assert_quoted("config", "table")

    def test_every_example_passes_check(self):
        jobs = ("saxpy.yaml", "population.yaml")
        examples = sorted(path for path in (README.parent / "examples").glob("*.yaml") if path.name not in jobs)
        self.assertGreaterEqual(len(examples), 5)
        with tempfile.TemporaryDirectory() as folder:
            password = pathlib.Path(folder, "password")
            password.write_text("secret\n")
            variables = {"KAFKA_PASSWORD_FILE": str(password), "STATE_DIR": folder, "XDG_STATE_HOME": folder}
            for example in examples:
                checked = subprocess.run(
                    [BINARY, "check", "--config", example], capture_output=True, text=True, env=os.environ | variables)
                self.assertEqual(checked.returncode, 0, checked.stderr)


if __name__ == "__main__":
    unittest.main()
