#!/usr/bin/env python3
"""The manual pages and the completion, made from what the binary says of itself, so that they cannot differ from it.

manual.py BINARY commands    gpu-worker.1
manual.py BINARY settings    gpu-worker.yaml.5
manual.py BINARY completion  the completion for bash
manual.py BINARY zsh         the same for zsh
manual.py BINARY fish        the same for fish
"""

import json
import re
import subprocess
import sys

# A line of a table in a help text: what stands left is a term, and what stands right says what it is.
TERM = re.compile(r"^  (?P<term>\S+(?: \S+)*)(?:  +(?P<text>\S.*))?$")
SPECIAL = {"\\": "\\e", "-": "\\-", "~": "\\(ti", "^": "\\(ha", "`": "\\(ga", "'": "\\(aq"}


def ask(binary, *arguments):
    return subprocess.run([binary, *arguments], check=True, capture_output=True, text=True).stdout


def commands_of(binary):
    """Name and summary of each command."""
    listed = ask(binary, "--help").split("\ncommands", 1)[1].split("\n\n", 1)[0].splitlines()[1:]
    return [line.strip().split(None, 1) for line in listed]


def blocks_of(text):
    """The paragraphs and tables of a help text, without the exit codes, which all of them have."""
    return [block for block in text.strip("\n").split("\n\n") if not block.startswith("exit codes:")]


def escape(text):
    """`text` as groff prints it: no character of it means anything else, and no line is a request."""
    escaped = "".join(SPECIAL.get(character, character) for character in text)
    return "\\&" + escaped if escaped.startswith(".") else escaped


def request(name, *arguments):
    return " ".join([f".{name}", *(f'"{argument}"' for argument in arguments)])


def paragraph(lines):
    return [".PP", *(escape(line.strip()) for line in lines)]


def example(lines):
    return [".PP", ".EX", *(escape(line) for line in lines), ".EE"]


def table(lines):
    page = []
    for line in lines:
        found = TERM.match(line)
        if found is None:
            page.append(escape(line.strip()))
            continue
        page += [".TP", request("B", escape(found["term"]).replace('"', "\\(dq"))]
        if found["text"]:
            page.append(escape(found["text"]))
    return page


def section(block):
    """A block of a help text: usage, examples, a table or a paragraph."""
    lines = block.splitlines()
    if lines[0].startswith("usage:"):
        return example([line[len("usage: "):] for line in lines])
    if lines[0].startswith("example"):
        return [".PP", "Examples:", *example(lines[1:])]
    if all(line.startswith("  ") for line in lines):
        return table(lines)
    return paragraph(lines)


def title(name, number, version):
    return ['.\\" Made by manual.py from what gpu-worker says of itself.', request("TH", name, number, "", version)]


def version_of(binary):
    return ask(binary, "version").splitlines()[0]


def commands_page(binary):
    help_text = ask(binary, "--help")
    purpose = blocks_of(help_text)[1]
    exit_codes = help_text.split("\nexit codes:\n", 1)[1].splitlines()
    page = title("GPU\\-WORKER", "1", version_of(binary))
    page += [".SH NAME", f"gpu\\-worker \\- {escape(purpose[0].lower() + purpose[1:].rstrip('.'))}"]
    page += [".SH SYNOPSIS", ".B gpu\\-worker", ".I COMMAND", ".RI [ OPTIONS ]"]
    page += [".SH DESCRIPTION", escape(purpose), ".SH COMMANDS"]
    for name, summary in commands_of(binary):
        page += [request("SS", f"gpu\\-worker {escape(name)}"), escape(summary[0].upper() + summary[1:] + ".")]
        for block in blocks_of(ask(binary, name, "--help")):
            page += section(block)
    page += [".SH EXAMPLES", *section(blocks_of(help_text)[-1])[3:]]
    page += [".SH EXIT STATUS", "The same for every command:", *table(exit_codes)]
    page += [".SH FILES", *table(["  /etc/gpu-worker/worker.yaml  the configuration that the service reads",
                                  "  /var/lib/gpu-worker  what its executors leave behind"])]
    page += [".SH SEE ALSO", ".BR gpu\\-worker.yaml (5)"]
    return page


def rows_of(binary):
    """Key, type, default and meaning of every setting."""
    for line in ask(binary, "config", "table").splitlines()[2:]:
        key, kind, default, meaning = line.strip("| ").split(" | ", 3)
        yield key.strip("`"), kind, default[1:-1], meaning


def settings_page(binary):
    sections = json.loads(ask(binary, "config", "schema"))["properties"]
    page = title("GPU\\-WORKER.YAML", "5", version_of(binary))
    page += [".SH NAME", "gpu\\-worker.yaml \\- configuration of gpu\\-worker", ".SH DESCRIPTION"]
    page += [escape("A YAML file that gpu-worker reads with --config; every setting has a default.")]
    # What stands above the settings that `config defaults` prints.
    page += paragraph(line[2:] for line in ask(binary, "config", "defaults").split("\n\n", 1)[0].splitlines()[1:])
    page += [".PP", escape("Durations have the units ms, s, m and h, sizes KiB, MiB, GiB and TiB; a plain number is"),
             "milliseconds, or bytes.", ".SH SETTINGS"]
    opened = None
    for key, kind, default, meaning in rows_of(binary):
        group = key.split(".")[0] if "." in key else None
        if group != opened:
            opened = group
            page += [request("SS", escape(group)), escape(sections[group]["description"])]
        page += [".TP", request("B", escape(key)), f"{escape(kind)}, default {escape(default)}", ".br", escape(meaning)]
    page += [".SH EXAMPLES", *example(["gpu-worker config defaults > worker.yaml",
                                       "gpu-worker check --config worker.yaml"])[1:]]
    return page + [".SH SEE ALSO", ".BR gpu\\-worker (1)"]


def words_of(help_text, command):
    """The command's own words, as its usage shows them."""
    found = re.search(rf"gpu-worker {command} \[?([a-z]+(?:\|[a-z]+)+)", help_text)
    return found[1].split("|") if found is not None else []


def options_of(help_text):
    """Each option with what it takes, and the first line of what it means."""
    found = re.findall(r"(?m)^  (--[a-z-]+)(?: ([][A-Z/.=:]+|[a-z]+(?:\|[a-z]+)+))?(?:\n +|  +)(\S.*)$", help_text)
    return [*found, ("--help", "", "print this text")]


def completion(binary):
    """A function of bash: `words` can stand anywhere after the command, and an option decides what follows it."""
    names = commands_of(binary)
    lines = [
        "# Completion of gpu-worker for bash. Made by manual.py from what gpu-worker says of itself.",
        "_gpu_worker() {",
        '    local word=${COMP_WORDS[COMP_CWORD]} words=""',
        "    COMPREPLY=()",
        "    if [ \"$COMP_CWORD\" -eq 1 ]; then",
        f"        words=\"{' '.join(name for name, _ in names)} help --help --version\"",
        "    else",
        '        case "${COMP_WORDS[1]} ${COMP_WORDS[COMP_CWORD - 1]}" in',
        f"            \"help \"*) words=\"{' '.join(name for name, _ in names)}\" ;;",
    ]
    for name, _ in names:
        help_text = ask(binary, name, "--help")
        options = options_of(help_text)
        for option, takes, _ in options:
            if takes == "DIR":
                action = 'mapfile -t COMPREPLY < <(compgen -d -- "$word") && return'
            elif "|" in takes:
                action = f'words="{takes.replace("|", " ")}"'
            elif "FILE" in takes:
                action = 'mapfile -t COMPREPLY < <(compgen -f -- "$word") && return'
            elif takes:
                action = "return"
            else:
                continue
            lines.append(f'            "{name} {option}") {action} ;;')
        words = [*words_of(help_text, name), *(option for option, _, _ in options)]
        lines.append(f'            "{name} "*) words="{" ".join(words)}" ;;')
    lines += [
        "        esac",
        "    fi",
        '    mapfile -t COMPREPLY < <(compgen -W "$words" -- "$word")',
        "}",
        "complete -o default -o filenames -F _gpu_worker gpu-worker",
    ]
    return lines


def quoted(text):
    """For a shell, between single quotes."""
    return "'" + text.replace("'", "'\\''") + "'"


def zsh_option(option, takes, text):
    meaning = re.sub(r"([][\\:])", r"\\\1", text)
    action = ("_files -/" if takes == "DIR" else f"({takes.replace('|', ' ')})" if "|" in takes
              else "_files" if "FILE" in takes else " ")
    return quoted(f"*{option}[{meaning}]" + (f":{takes.split('|')[0] if '|' not in takes else 'one'}:{action}" if takes else ""))


def zsh_completion(binary):
    names = commands_of(binary)
    lines = [
        "#compdef gpu-worker",
        "# Completion of gpu-worker for zsh. Made by manual.py from what gpu-worker says of itself.",
        "_gpu_worker() {",
        "    local -a commands=(",
        *(f"        {quoted(name + ':' + summary.replace(':', chr(92) + ':'))}" for name, summary in names),
        "        'help:say more about a command'",
        "    )",
        "    if (( CURRENT == 2 )); then",
        "        _describe command commands -- '(--help --version)'",
        "        return",
        "    fi",
        "    shift words",
        "    (( CURRENT-- ))",
        "    case $words[1] in",
        "        help) _describe command commands ;;",
    ]
    for name, _ in names:
        help_text = ask(binary, name, "--help")
        words = words_of(help_text, name)
        lines.append(f"        {name})")
        lines.append("            _arguments \\")
        lines += [f"                {zsh_option(*option)} \\" for option in options_of(help_text)]
        lines += [f"                '1:word:({' '.join(words)})' \\"] if words else []
        lines.append("                '*:file:_files' ;;")
    return [*lines, "    esac", "}", "_gpu_worker \"$@\""]


def fish_completion(binary):
    lines = [
        "# Completion of gpu-worker for fish. Made by manual.py from what gpu-worker says of itself.",
        "complete -c gpu-worker -f -n __fish_use_subcommand -l help -d 'print this text'",
        "complete -c gpu-worker -f -n __fish_use_subcommand -l version -d 'print what this binary was built from'",
        "complete -c gpu-worker -f -n __fish_use_subcommand -a help -d 'say more about a command'",
    ]
    for name, summary in commands_of(binary):
        help_text = ask(binary, name, "--help")
        lines.append(f"complete -c gpu-worker -f -n __fish_use_subcommand -a {name} -d {fish_quoted(summary)}")
        lines.append(f"complete -c gpu-worker -f -n '__fish_seen_subcommand_from help' -a {name}")
        here = f"-n '__fish_seen_subcommand_from {name}; and not __fish_seen_subcommand_from help'"
        for word in words_of(help_text, name):
            lines.append(f"complete -c gpu-worker -f {here} -a {word}")
        for option, takes, text in options_of(help_text):
            what = (f"-x -a {fish_quoted(takes.replace('|', ' '))}" if "|" in takes
                    else "-x -a '(__fish_complete_directories)'" if takes == "DIR"
                    else "-r -F" if "FILE" in takes else "-x" if takes else "-f")
            lines.append(f"complete -c gpu-worker {here} -l {option[2:]} {what} -d {fish_quoted(text)}")
    return lines


def fish_quoted(text):
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def main(arguments):
    makers = {"commands": commands_page, "settings": settings_page, "completion": completion,
              "zsh": zsh_completion, "fish": fish_completion}
    if len(arguments) != 2 or arguments[1] not in makers:
        sys.exit(__doc__)
    print("\n".join(makers[arguments[1]](arguments[0])))


if __name__ == "__main__":
    main(sys.argv[1:])
