"""The words of CONTRIBUTING.md's table are each there once, and those that they replaced are gone."""

import pathlib
import re
import unittest

import files

ROOT = pathlib.Path(__file__).parents[2]
# The table itself, what was called otherwise in earlier versions, and measurements as they were printed.
OLD_WORDS_STAY = {"CONTRIBUTING.md", "CHANGELOG.md", "tests/bench/RESULTS.md"}
TEXTS = {".c", ".h", ".md", ".py", ".txt", ".cmake", ".yaml", ".json", ""}


def read_table():
    """[(word, meaning, the words that it replaced)]"""
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    section = text.split("\n## Words\n")[1].split("\n## ")[0]
    rows = [line.strip("|").split("|") for line in section.splitlines() if line.startswith("|")][2:]
    return [(word.strip(), meaning.strip(), [old.strip() for old in replaced.split(",") if old.strip()])
            for word, meaning, replaced in rows]  # fmt: skip


def old_words_in(name, text, table):
    """Lines of "file:line: rule"; a blank of an old word may be a blank, a line's end, "_" or "-"."""
    found, lowered = [], text.lower()
    for word, _, replaced in table:
        for old in replaced:
            if old.split()[0].lower() not in lowered:
                continue  # a search by expression takes a hundred times as long
            pattern = r"(?<![a-z])" + r"[\s_*/#-]+".join(map(re.escape, old.split())) + r"s?(?![a-z])"
            for match in re.finditer(pattern, text, re.IGNORECASE):
                found.append(f"{name}:{text.count(chr(10), 0, match.start()) + 1}: '{old}' is called {word}")
    return found


class Words(unittest.TestCase):
    def test_each_word_has_a_meaning_and_stands_once_in_order(self):
        words = [word for word, _, _ in read_table()]
        self.assertGreater(len(words), 10)
        self.assertEqual(sorted(set(words)), words)
        for word, meaning, _ in read_table():
            self.assertTrue(meaning, word)

    def test_a_word_that_was_replaced_is_found_however_it_is_written(self):
        table = [("baseline", "", ["bare loop"])]
        for text in ("a Bare loop", "bare_loop_run()", "bare\n * loops"):
            self.assertEqual(["x.c:1: 'bare loop' is called baseline"], old_words_in("x.c", text, table), text)
        self.assertEqual([], old_words_in("x.c", "threadbare loop, bare looping", table))

    def test_words_that_were_replaced_stand_nowhere_any_more(self):
        found, table = [], read_table()
        for path in files.repository_files(ROOT):
            name = path.relative_to(ROOT).as_posix()
            if name in OLD_WORDS_STAY or path.suffix not in TEXTS or path == pathlib.Path(__file__):
                continue
            found += old_words_in(name, path.read_text(encoding="utf-8", errors="replace"), table)
        self.assertFalse(found, "\n" + "\n".join(found))


if __name__ == "__main__":
    unittest.main()
