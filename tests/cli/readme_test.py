"""config/README.md's configuration table is what the binary prints. usage: readme_test.py BINARY README"""

import pathlib
import subprocess
import sys
import unittest

BINARY, README = sys.argv[1], pathlib.Path(sys.argv[2])
sys.argv[1:] = []


class Readme(unittest.TestCase):
    def assert_quoted(self, *command):
        printed = subprocess.run([BINARY, *command], check=True, capture_output=True, text=True).stdout.strip()
        self.assertTrue(printed in README.read_text(), f"paste the output of gpu-worker {' '.join(command)} into config/README.md")

    def test_the_configuration_table_is_the_generated_one(self):
        self.assert_quoted("config", "table")


if __name__ == "__main__":
    unittest.main()
