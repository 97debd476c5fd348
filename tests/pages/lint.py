"""What holds for all pages: links lead somewhere, blocks say what they are, commands within a sentence exist, and the
pages with commands are those that tests run. usage: lint.py BINARY RUN_PAGE..."""

import pathlib
import re
import subprocess
import sys
import unittest

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(HERE.parent / "layout"))

import files
from not_run import NOT_RUN
from pages import COMMANDS, LANGUAGES, anchors, inline_codes, links, read_page, typed

BINARY, RUN = sys.argv[1], sys.argv[2:]
sys.argv[1:] = []
FRONT_PAGE_LINES_MAX = 150
TYPED_A_MINUTE = 200  # characters, by somebody who is not used to it
TYPED_MINUTES_MAX = 15
COMMAND_LIKE = re.compile(r"^\$ |^\s*(sudo |\./)?(scripts/|gpu-worker |helm |kubectl |docker |dpkg |apt(-get)? |ctest |cmake )")
OPTION = re.compile(r"(?<![\w-])(--[a-z][\w-]*)")


def read_pages():
    paths = [path for path in files.repository_files(ROOT) if path.suffix == ".md"]
    return {path.relative_to(ROOT).as_posix(): read_page(path.read_text()) for path in paths}


PAGES = read_pages()


class Pages(unittest.TestCase):
    def assert_none(self, faults):
        self.assertFalse(faults, "\n" + "\n".join(faults))

    def test_the_front_page_is_short(self):
        self.assertLessEqual(len((ROOT / "README.md").read_text().splitlines()), FRONT_PAGE_LINES_MAX)

    def test_an_own_kernel_runs_from_a_notebook_after_a_quarter_of_an_hour_of_typing(self):
        text = (ROOT / "config/programs/README.md").read_text()
        way = text[text.index("## Your kernel in ten minutes"):text.index("$ python3 centers.py")] + "```\n"
        count = sum(len(line) + 1 for block in read_page(way).blocks for line in typed(block))
        self.assertLess(count / TYPED_A_MINUTE, TYPED_MINUTES_MAX)
        self.assertIn(f"{count:,} characters", " ".join(text.split()), "the page says how many")

    def dead(self, name, target):
        file, _, anchor = target.partition("#")
        if "://" in file or file.startswith("mailto:"):
            return None
        path = (ROOT / name).parent / file if file else ROOT / name
        if not path.exists():
            return "there is no such file"
        linked = path.resolve().relative_to(ROOT).as_posix()
        if anchor and (linked not in PAGES or anchor not in anchors(PAGES[linked])):
            return f"{linked} has no such heading"
        return None

    def test_every_link_leads_somewhere(self):
        self.assert_none([
            f"{name}:{line}: ({target}): {fault}"
            for name, page in PAGES.items() for line, target in links(page) if (fault := self.dead(name, target))
        ])  # fmt: skip

    def test_every_block_says_what_it_is(self):
        self.assert_none([
            f"{name}:{block.line}: ```{block.language} is none of {' '.join(sorted(LANGUAGES))}"
            for name, page in PAGES.items() for block in page.blocks if block.language not in LANGUAGES
        ])  # fmt: skip

    def test_no_command_hides_in_a_block_that_is_not_run(self):
        self.assert_none([
            f"{name}:{block.line + number}: looks like a command in ```{block.language}: {line}"
            for name, page in PAGES.items() for block in page.blocks if block.language == "text"
            for number, line in enumerate(block.lines, 1) if COMMAND_LIKE.match(line)
        ])  # fmt: skip

    def test_the_pages_with_commands_are_those_that_are_run(self):
        with_commands = {name for name, page in PAGES.items() if any(b.language in COMMANDS for b in page.blocks)}
        self.assertEqual(set(RUN), with_commands)
        self.assert_none([f"not_run.py: {name} is no page" for name in NOT_RUN if name not in PAGES])

    def help_of(self, command):
        """The help text of what the words name, or None where there is no such command."""
        if command[0] == "gpu-worker":
            words = [BINARY, *([command[1]] if len(command) > 1 and not command[1].startswith("-") else [])]
        elif command[0].startswith("scripts/") and "." not in command[0] and (ROOT / command[0]).is_file():
            words = [ROOT / command[0]]
        else:
            return None
        asked = subprocess.run([*words, "--help"], capture_output=True, text=True)
        return asked.stdout if asked.returncode == 0 else None

    def test_a_command_within_a_sentence_exists_and_has_its_options(self):
        faults = []
        for name, page in PAGES.items():
            for line, code in inline_codes(page):
                words = code.split()
                if not words or words[0] not in ("gpu-worker", *SCRIPTS) or len(words) == 1:
                    continue
                text = self.help_of(words)
                if text is None:
                    faults.append(f"{name}:{line}: there is no such command: {code}")
                else:
                    unknown = [option for option in OPTION.findall(code) if option not in text and option != "--help"]
                    faults += [f"{name}:{line}: {code}: --help does not know {option}" for option in unknown]
        self.assert_none(faults)


SCRIPTS = {f"scripts/{path.name}" for path in (ROOT / "scripts").iterdir() if path.is_file() and "." not in path.name}

if __name__ == "__main__":
    unittest.main()
