#!/usr/bin/env python3
"""What every file of the repository keeps to, and where files may stand.

files.py [ROOT]  prints file:line and the rule of each violation
"""

import os
import pathlib
import re
import sys

TOP_LEVEL = {
    "CHANGELOG.md", "CMakeLists.txt", "CMakePresets.json", "CONTRIBUTING.md", "LICENSE", "README.md", "SECURITY.md",
    "config", "deploy", "schemas", "scripts", "tests", "worker",
}  # fmt: skip
NOT_OURS = {"build", "__pycache__"}
SOURCE_LINES_MAX = 800
# Split, so that this file keeps to its own rules.
OPEN_MARKS = re.compile(r"\b(TO" r"DO|FIX" r"ME|XX" r"X|HA" r"CK)\b")
# A reader of a comment alone does not know who "it" is.
PRONOUN = re.compile(r'(/\*\*? |^\s*# |""")(They|It|This|These|Those|Its|Their|The same)\b')
HOME_PATHS = re.compile(r"(?<![\w.$}/-])/(home|root|work|Users)/\w")


def repository_files(root):
    """Every file but dot-files at the top (tools keep theirs there) and what a build leaves."""
    for folder, folders, files in os.walk(root):
        path = pathlib.Path(folder)
        folders[:] = sorted(name for name in folders if name not in NOT_OURS)
        if path == root:
            folders[:] = [name for name in folders if not name.startswith(".")]
            files = [name for name in files if not name.startswith(".")]
        yield from (path / name for name in sorted(files))


def check_place(name):
    top = name.split("/")[0]
    return [] if top in TOP_LEVEL else [f"{name}:1: stands outside the agreed top level"]


def check_text(name, text):
    found = []
    for number, line in enumerate(text.splitlines(), 1):
        if OPEN_MARKS.search(line):
            found.append(f"{name}:{number}: leaves something open; finish it or open an issue")
        if HOME_PATHS.search(line):
            found.append(f"{name}:{number}: names a path of one machine")
        if name.endswith((".c", ".h", ".py")) and PRONOUN.search(line):
            found.append(f"{name}:{number}: a comment begins with a pronoun; name its subject")
    return found


def check_length(name, text):
    lines = len(text.splitlines())
    if name.endswith((".c", ".h")) and lines > SOURCE_LINES_MAX:
        return [f"{name}:{lines}: more than {SOURCE_LINES_MAX} lines; is there a second noun in it?"]
    return []


def listed_names(path, name):
    """How a CMakeLists.txt may name a source: a program by its folder, a test by what it tests."""
    if path.stem == path.parent.name:
        return [path.stem]
    return [path.name, path.stem.removesuffix("_test")] if name.startswith("tests/") else [path.name]


def check_listed(root, name):
    """A source that no CMakeLists.txt names is never compiled."""
    if not name.startswith(("worker/", "tests/")) or not name.endswith(".c"):
        return []
    path = root / name
    lists = next(lists for folder in path.parents if (lists := folder / "CMakeLists.txt").exists())
    names = "|".join(re.escape(listed) for listed in listed_names(path, name))
    if re.search(rf"(?<![\w.])({names})\b", lists.read_text(encoding="utf-8")):
        return []
    return [f"{name}:1: is not listed in {lists.relative_to(root)}"]


def violations(root):
    found = []
    for path in repository_files(root):
        name = path.relative_to(root).as_posix()
        found += check_place(name) + check_listed(root, name)
        try:
            text = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue  # test vectors
        found += check_text(name, text) + check_length(name, text)
    return found


def main(arguments):
    root = pathlib.Path(arguments[0]) if arguments else pathlib.Path(__file__).parents[2]
    found = violations(root)
    print("\n".join(found) if found else "every file keeps to the rules")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
