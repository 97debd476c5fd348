"""Runs the commands of a page, in order, in a copy of the repository, and compares what they print with what the page
shows. usage: run_page.py PAGE BUILD_FOLDER

Commands run in one bash. One must end with 0, unless the next one in its block is `echo $?`. In what a page shows, a
line `...` stands for any lines and `...` within a line for any text; what differs from run to run (VOLATILE) is not compared. Kafka gets free ports."""

import contextlib
import difflib
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path[:0] = [str(HERE.parent / "flow"), str(HERE.parent / "layout")]

import files
from kafka_cluster import claim_ports
from not_run import NOT_RUN
from pages import COMMANDS, read_page

TIMEOUT_S = 420
HTTP_PORT_OFFSET = 10  # behind those of one broker
VOLATILE = [
    (re.compile(pattern), put)
    for pattern, put in (
        (r"_ns: \d+", "_ns: N"),
        (r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?Z?", "TIME"),
        (r"(host: )\S+", r"\1HOST"),
        (r"\b(gpu-[a-z-]+)/\d+/\d+", r"\1/PARTITION/OFFSET"),
        (r"(partition|offset): \S+", r"\1: N"),
        (r"127\.0\.0\.1:\d+|localhost:\d+", "ADDRESS"),
        (r"\b\d+(\.\d+)? (s|ms|ns)\b", r"N \2"),
        (r"\b(process|pid) \d+", r"\1 N"),
        (r"/\S*/gpu-worker-page-\w+", "FOLDER"),
        (r'version: "\S+"', "version: V"),
    )
]


def copy_repository(folder, build):
    """Every file of ours, and the build under the name that pages use."""
    for path in files.repository_files(ROOT):
        target = folder / path.relative_to(ROOT)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(path, target)
    (folder / "build").mkdir()
    (folder / "build/release").symlink_to(build)
    (folder / "build/deps").symlink_to(ROOT / "build/deps")


def environment(folder, first_port):
    python = ROOT / "build/deps/python/bin"
    return os.environ | {
        "HOME": str(folder), "XDG_STATE_HOME": str(folder / "build/state"), "PS1": "", "LC_ALL": "C.UTF-8",
        "PATH": f"{folder}/build/release/bin:{python}:{os.environ['PATH']}", "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONPATH": str(folder / "scripts/python"),
        "KAFKA_PORT": str(first_port), "HTTP_PORT": str(first_port + HTTP_PORT_OFFSET),
    }  # fmt: skip


def steps_of(name, page):
    """(command or file) in the order of the page, and what is wrong with it before anything runs."""
    steps, left_out = [], dict(NOT_RUN.get(name, {}))
    for block in page.blocks:
        if block.file_name:
            steps.append((block, None, False))
        if block.language not in COMMANDS:
            continue
        commands = block.commands()
        for number, command in enumerate(commands):
            if left_out.pop(command.text, None) is None:
                asks = number + 1 < len(commands) and commands[number + 1].text == "echo $?"
                steps.append((block, command, asks))
    return steps, [f"not_run.py names what {name} has no more: {text}" for text in left_out]


def file_script(block):
    path, text = block.file_name, "\n".join(block.lines) + "\n"
    if (ROOT / path).exists():  # shown as it is
        shown = "".join(line for line in (ROOT / path).read_text())
        return "true" if shown == text else f"echo '{path} differs from what the page shows'; false"
    return f"mkdir -p \"$(dirname '{path}')\"; cat >'{path}' <<'END_OF_FILE'\n{text}END_OF_FILE"


def script(steps):
    parts = ["exec 2>&1"]
    for number, (block, command, _) in enumerate(steps):
        text = command.text if command else file_script(block)
        parts += [f"printf '\\n<begin {number}>\\n'", "(exit ${status:-0})", text, "status=$?"]
        parts += [f"printf '\\n<end {number} %d>\\n' $status"]
    parts.append("kill $(jobs -p) 2>/dev/null; wait; true")
    return "\n".join(parts) + "\n"


def plain(line):
    for pattern, put in VOLATILE:
        line = pattern.sub(put, line)
    return line.rstrip()


def same_line(shown, printed):
    parts = plain(shown).split("...")
    return re.fullmatch(".*".join(map(re.escape, parts)), plain(printed)) is not None


def agrees(shown, printed):
    """Whether the lines are the same, `...` being any lines."""
    if not shown:
        return not printed
    if shown[0].strip() == "...":
        return any(agrees(shown[1:], printed[skip:]) for skip in range(len(printed) + 1))
    return bool(printed) and same_line(shown[0], printed[0]) and agrees(shown[1:], printed[1:])


def judge(name, steps, output):
    """A text for each command that did not do what the page says."""
    faults = []
    for number, (block, command, asks) in enumerate(steps):
        line, text = (command.line, command.text) if command else (block.line, f"the file {block.file_name}")
        found = re.search(rf"<begin {number}>\n(.*?)\n?<end {number} (\d+)>", output, re.DOTALL)
        if found is None:
            return [*faults, f"{name}:{line}: did not end: {text}\n{output[-3000:]}"]
        printed = found[1].strip("\n").splitlines()
        if int(found[2]) != 0 and not asks:
            faults.append(f"{name}:{line}: status {found[2]}: {text}\n" + "\n".join(printed))
        elif command and command.printed is not None and not agrees(command.printed, printed):
            both = difflib.unified_diff(command.printed, printed, "shown", "printed", lineterm="")
            faults.append(f"{name}:{line}: {text}\n" + "\n".join(both))
    return faults


@contextlib.contextmanager
def kafka_guarded(folder, env):
    """Whatever becomes of this process, a Kafka that the page started ends."""
    guard = subprocess.Popen(["setsid", "--fork", folder / "scripts/kafka", "guard"], env=env, stdin=subprocess.PIPE,
                             stdout=subprocess.PIPE)  # fmt: skip
    try:
        yield
    finally:
        guard.communicate()


def run(steps, folder, env):
    commands = folder / "build/page.sh"
    commands.write_text(script(steps))
    process = subprocess.Popen(["bash", commands], cwd=folder, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                               text=True, start_new_session=True, errors="replace")  # fmt: skip
    try:
        return process.communicate(timeout=TIMEOUT_S)[0]
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        return process.communicate()[0]


def main(name, build):
    steps, faults = steps_of(name, read_page((ROOT / name).read_text()))
    with tempfile.TemporaryDirectory(prefix="gpu-worker-page-") as scratch:
        folder = pathlib.Path(scratch).resolve()
        copy_repository(folder, pathlib.Path(build).resolve())
        port, claim = claim_ports()
        env = environment(folder, port)
        with claim, kafka_guarded(folder, env):
            faults += judge(name, steps, run(steps, folder, env))
        if faults:
            for log in sorted(folder.glob("*.log")):
                faults.append(f"the end of {log.name}:\n{log.read_text(errors='replace')[-2000:]}")
    print("\n\n".join(faults) or f"{len(steps)} steps of {name} do what it says")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
