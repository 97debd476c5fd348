"""What the tests of pages see in a page, and what they find wrong with it."""

import unittest

from not_run import NOT_RUN
from pages import anchors, links, read_page
from run_page import agrees, judge, steps_of

CONSOLE = """# Title
```console
$ echo one
one
$ cat <<END
> two
> END
two
$ false
$ echo $?
1
```
"""


class PagesTest(unittest.TestCase):
    def test_a_console_gives_commands_and_what_each_prints(self):
        commands = read_page(CONSOLE).blocks[0].commands()
        self.assertEqual([c.text for c in commands], ["echo one", "cat <<END\ntwo\nEND", "false", "echo $?"])
        self.assertEqual([c.printed for c in commands], [["one"], ["two"], [], ["1"]])

    def test_a_script_is_cut_where_bash_has_a_whole_command(self):
        text = "```sh\n# why\necho a \\\n  b\nfor x in 1; do\n  echo $x\ndone\ncat >f <<END\nls\nEND\n```\n"
        commands = read_page(text).blocks[0].commands()
        self.assertEqual([(c.line, c.text.split()[0]) for c in commands], [(3, "echo"), (5, "for"), (8, "cat")])

    def test_a_block_that_follows_a_file_name_is_that_file(self):
        page = read_page("Write `a/b.yaml`:\n\n```yaml\nx: 1\n```\nNot a file.\n```yaml\ny: 2\n```\n")
        self.assertEqual([block.file_name for block in page.blocks], ["a/b.yaml", None])

    def test_a_block_without_an_end_is_refused(self):
        with self.assertRaises(ValueError):
            read_page("```sh\nls\n")

    def test_headings_and_links_are_those_of_the_web(self):
        page = read_page("# A `b` c's, [d](e.md)\n## X\n## X\nsee [x](#x-1) and [f](f.md)\n```text\n# no\n```\n")
        self.assertEqual(anchors(page), {"a-b-cs-d", "x", "x-1"})
        self.assertEqual([target for _, target in links(page)], ["e.md", "#x-1", "f.md"])


class RunPageTest(unittest.TestCase):
    def test_dots_stand_for_lines_and_for_text(self):
        self.assertTrue(agrees(["a", "...", "d"], ["a", "b", "c", "d"]))
        self.assertTrue(agrees(["a ... c"], ["a and b, then c"]))
        self.assertFalse(agrees(["a", "..."], ["b"]))
        self.assertFalse(agrees(["a"], ["a", "b"]))
        self.assertFalse(agrees(["a ... c"], ["a and b"]))

    def test_only_what_differs_from_run_to_run_is_not_compared(self):
        self.assertTrue(agrees(["queue_ns: 1", "at 127.0.0.1:9092"], ["queue_ns: 77", "at 127.0.0.1:1234"]))
        self.assertFalse(agrees(["data: {f32: [12, 24, 36]}"], ["data: {f32: [12, 24, 37]}"]))
        self.assertFalse(agrees(["h2d_bytes: 24"], ["h2d_bytes: 12"]))

    def outcome(self, *statuses_and_output):
        """What is found wrong with CONSOLE where its commands ended and printed so."""
        steps, _ = steps_of("CONSOLE", read_page(CONSOLE))
        output = "".join(f"\n<begin {n}>\n{printed}\n<end {n} {status}>\n"
                         for n, (status, printed) in enumerate(statuses_and_output))  # fmt: skip
        return judge("CONSOLE", steps, output)

    def test_a_page_that_does_what_it_says_is_well(self):
        self.assertEqual(self.outcome((0, "one"), (0, "two"), (1, ""), (0, "1")), [])

    def test_another_output_a_failed_command_and_one_that_never_ends_are_found(self):
        self.assertEqual(len(self.outcome((0, "another"), (0, "two"), (1, ""), (0, "1"))), 1)
        self.assertEqual(len(self.outcome((3, "one"), (0, "two"), (1, ""), (0, "1"))), 1)
        self.assertEqual(len(self.outcome((0, "one"), (0, "two"))), 1)

    def test_what_is_not_run_and_not_in_the_page_any_more_is_found(self):
        self.assertEqual(len(steps_of("README.md", read_page(CONSOLE))[1]), len(NOT_RUN["README.md"]))


if __name__ == "__main__":
    unittest.main()
