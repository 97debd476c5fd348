"""Two that need Apache Kafka at the same moment, where it has not been fetched yet. Maven is a script here."""

import hashlib
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

SCRIPTS = pathlib.Path(__file__).resolve().parents[2] / "scripts"
PATIENCE_S = 240

# Each says who begins; Maven then waits until it may go on, and prints a class path.
MVN = """#!/bin/bash
echo called >>"$FAKES/calls"
echo >"$FAKES/$WHO"
until [ -e "$FAKES/go" ]; do sleep 0.02; done
mkdir -p "$FAKES/repository"
printf '%s' "$JAR" >"$FAKES/repository/kafka.jar"
echo "/no/such/folder:$FAKES/repository/kafka.jar"
"""
FLOCK = """#!/bin/bash
if [ "$WHO" = second ]; then echo >"$FAKES/$WHO"; fi
exec "$REAL_FLOCK" "$@"
"""


class FetchTest(unittest.TestCase):
    def setUp(self):
        root = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.fakes = root / "fakes"
        self.fakes.mkdir()
        self.environment = os.environ | {
            "PATH": f"{self.fakes}:{os.environ['PATH']}", "FAKES": str(self.fakes), "REAL_FLOCK": shutil.which("flock"),
            "JAR": "a jar"}
        for name, text in ("mvn", MVN), ("java", ""), ("flock", FLOCK):
            path = self.fakes / name
            path.write_text(text)
            path.chmod(0o755)
        for name in "first", "second":  # their readers wait for them
            os.mkfifo(self.fakes / name)
        (root / "scripts").mkdir()
        for name in "kafka", "lib.sh", "kafka.pom.xml":
            shutil.copy(SCRIPTS / name, root / "scripts")
        (root / "scripts/kafka.sha256").write_text(f"{hashlib.sha256(b'a jar').hexdigest()}  kafka.jar\n")
        self.script = root / "scripts/kafka"
        self.deps = root / "build/deps"

    def begin(self, who, **environment):
        """A fetch that Maven, or what keeps it waiting, has been called for."""
        process = subprocess.Popen(
            [self.script, "fetch"], env=self.environment | {"WHO": who} | environment, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.addCleanup(process.kill)
        (self.fakes / who).read_text()
        return process

    def assert_fetched(self, *processes):
        for process in processes:
            said, _ = process.communicate(timeout=PATIENCE_S)
            self.assertEqual(process.returncode, 0, said)
        self.assertEqual((self.fakes / "calls").read_text(), "called\n")
        self.assertEqual((self.deps / "kafka/kafka.jar").read_text(), "a jar")

    def test_two_at_the_same_time_fetch_once_and_both_have_it(self):
        first, second = self.begin("first"), self.begin("second")
        (self.fakes / "go").touch()
        self.assert_fetched(first, second)

    def test_jars_other_than_those_of_the_list_are_refused_and_not_kept(self):
        fetch = self.begin("first", JAR="another")
        (self.fakes / "go").touch()
        said, _ = fetch.communicate(timeout=PATIENCE_S)
        self.assertEqual(fetch.returncode, 1)
        self.assertIn("are not those of scripts/kafka.sha256", said)
        self.assertFalse((self.deps / "kafka").exists())


if __name__ == "__main__":
    unittest.main(verbosity=2)
