"""schemas/README.md explains every code of worker/base/error.h, with who retries."""

import pathlib
import re
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]


def declared():
    """{code: retry} of ERR_LIST."""
    header = (ROOT / "worker/base/error.h").read_text()
    found = re.findall(r'X\(\w+, "(\w+)",[\s\\]*(NEVER|WORKER|SENDER),', header)
    return {code: retry.lower() for code, retry in found if code != "ok"}


def explained():
    """{code: retry} of the table; a row may have several codes, and as many retries."""
    rows = re.findall(r"^\| (`\w+`(?:, `\w+`)*) \| .+ \| .+ \| ([a-z, ]+) \|$", (ROOT / "schemas/README.md").read_text(), re.M)
    return {code: retry for codes, retries in rows
            for code, retry in zip(re.findall(r"\w+", codes), retries.split(", "), strict=True)}  # fmt: skip


class Codes(unittest.TestCase):
    def test_every_code_is_explained_with_who_retries(self):
        self.assertGreater(len(declared()), 30)
        self.assertEqual(declared(), explained())


if __name__ == "__main__":
    unittest.main()
