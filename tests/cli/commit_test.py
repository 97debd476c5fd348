"""Where `gpu-worker version` has its commit from: what was given, git, or nobody.
usage: commit_test.py"""

import pathlib
import subprocess
import tempfile
import unittest

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "worker/cli/commit.cmake"


class CommitTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="gpu-worker-commit-")
        self.addCleanup(folder.cleanup)
        self.source = pathlib.Path(folder.name, "source")
        self.header = pathlib.Path(folder.name, "generated/commit.h")
        self.source.mkdir()

    def git(self, *arguments):
        return subprocess.run(["git", "-C", self.source, "-c", "user.name=x", "-c", "user.email=x@example.com", *arguments],
                              check=True, capture_output=True, text=True).stdout.strip()

    def commit(self, given=""):
        subprocess.run(["cmake", "-D", f"SOURCE={self.source}", "-D", f"GIVEN={given}", "-D", f"HEADER={self.header}",
                        "-P", SCRIPT], check=True, capture_output=True)
        return self.header.read_text().split('"')[1]

    def test_a_folder_without_git_has_what_was_given_or_is_unknown(self):
        self.assertEqual(self.commit(), "unknown")
        self.assertEqual(self.commit("v0.1.0"), "v0.1.0")

    def test_a_checkout_has_its_commit_and_says_where_files_were_changed(self):
        self.git("init", "-q")
        (self.source / "file").write_text("one")
        self.git("add", "file")
        self.git("commit", "-q", "-m", "One")
        head = self.git("rev-parse", "--short=12", "HEAD")
        self.assertEqual(self.commit(), head)
        written = self.header.stat().st_mtime_ns
        self.assertEqual(self.commit(), head)
        self.assertEqual(self.header.stat().st_mtime_ns, written, "what has not changed is not built again")
        (self.source / "file").write_text("two")
        self.assertEqual(self.commit(), head + "+changes")
        self.assertEqual(self.commit("mine"), "mine")


if __name__ == "__main__":
    unittest.main(verbosity=2)
