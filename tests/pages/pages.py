"""Reads a page of Markdown as its reader does: fenced blocks, the commands in them, links and headings."""

import dataclasses
import re
import subprocess

# What a fence may be. `sh`: commands. `console`: commands after "$ ", each followed by what it prints. A block of one of
# FILES after a line that ends with a file's name and a colon is that file. `text` is for people alone.
COMMANDS = {"sh", "console"}
FILES = {"c", "python", "yaml", "json", "markdown"}
LANGUAGES = COMMANDS | FILES | {"text"}

FENCE = re.compile(r"^```(\w*)$")
FILE_NAME = re.compile(r"`([\w./-]+)`(?:\]\([^)]*\))?[^`]*:$")
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
CODE = re.compile(r"`([^`]+)`")


@dataclasses.dataclass
class Command:
    line: int
    text: str
    printed: list | None = None  # the lines that the page shows; None where it shows nothing of them


@dataclasses.dataclass
class Block:
    line: int  # of its fence
    language: str
    before: str  # the last line of text before it
    lines: list = dataclasses.field(default_factory=list)

    @property
    def file_name(self):
        """The file that it is, or None."""
        named = FILE_NAME.search(self.before)
        return named[1] if self.language in FILES and named else None

    def commands(self):
        return console_commands(self) if self.language == "console" else script_commands(self.line + 1, self.lines)


@dataclasses.dataclass
class Page:
    blocks: list
    prose: list  # (line number, text) of what is outside of blocks


def read_page(text):
    page, block, before = Page([], []), None, ""
    for number, line in enumerate(text.splitlines(), 1):
        fence = FENCE.match(line.strip())
        if block is not None:
            if fence:
                block = None
            else:
                block.lines.append(line)
        elif fence:
            block = Block(number, fence[1], before)
            page.blocks.append(block)
        else:
            page.prose.append((number, line))
            before = line.strip() or before
    if block is not None:
        raise ValueError(f"line {block.line}: the block has no end")
    return page


def is_whole(text):
    """Whether bash would run it, and not ask for more."""
    checked = subprocess.run(["bash", "-n"], input=text + "\n", capture_output=True, text=True)
    return not checked.stderr and not text.endswith("\\")


def script_commands(first_line, lines):
    """Each command of a script, with the lines that it goes on for."""
    commands, pending, start = [], [], 0
    for number, line in enumerate(lines, first_line):
        if not pending and (not line.strip() or line.lstrip().startswith("#")):
            continue
        start = start if pending else number
        pending.append(line)
        if is_whole("\n".join(pending)):
            commands.append(Command(start, "\n".join(pending)))
            pending = []
    if pending:
        raise ValueError(f"line {start}: bash cannot read it: {pending[0]}")
    return commands


def console_commands(block):
    """A command is what follows "$ ", with its lines that begin with "> ", and prints the lines after it."""
    commands = []
    for number, line in enumerate(block.lines, block.line + 1):
        if line.startswith("$ "):
            commands.append(Command(number, line[2:], []))
        elif not commands:
            raise ValueError(f"line {number}: a console begins with a command")
        elif line.startswith("> ") and not commands[-1].printed:
            commands[-1].text += "\n" + line[2:]
        else:
            commands[-1].printed.append(line)
    return commands


def typed(block):
    """The lines that a reader types: commands, files, and the cells of a notebook. Editors indent."""
    if block.file_name:
        return [line.strip() for line in block.lines if line.strip() and not line.startswith("# %%")]
    if block.language not in COMMANDS:
        return []
    return [line.strip() for command in block.commands() for line in command.text.splitlines()]


def anchors(page):
    """What a link may name behind '#': headings, as they are shown on the web."""
    found = {}
    for _, line in page.prose:
        if line.startswith("#"):
            title = re.sub(r"[`*]|\[([^\]]*)\]\([^)]*\)", r"\1", line.lstrip("#").strip()).lower()
            name = re.sub(r"[^\w\- ]", "", title).replace(" ", "-")
            found[name] = found.get(name, -1) + 1
    return {name if number == 0 else f"{name}-{number}" for name, count in found.items() for number in range(count + 1)}


def links(page):
    """(line, target) of each link."""
    return [(number, target) for number, line in page.prose for target in LINK.findall(line)]


def inline_codes(page):
    return [(number, code) for number, line in page.prose for code in CODE.findall(line)]
