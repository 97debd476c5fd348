"""Runs the quickstart with a real worker, and then what it says to try. Its arguments are the quickstart's."""

import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
QUICKSTART = ROOT / "scripts/python/quickstart.py"


def main(arguments):
    ran = subprocess.run([sys.executable, "-B", QUICKSTART, *arguments], cwd=ROOT, stdout=subprocess.PIPE, text=True)
    print(ran.stdout, flush=True)
    if ran.returncode != 0:
        return ran.returncode
    lines = ran.stdout.split("is yours to go on with. Try:\n")[1].splitlines()
    commands = [line.strip() for line in lines[: lines.index("")]]
    state = pathlib.Path(arguments[arguments.index("--folder") + 1], "state")
    tried = subprocess.run(
        ["bash", "-e"], input="\n".join([*commands, "wait %1"]) + "\n", cwd=ROOT, stdout=subprocess.PIPE, text=True,
        timeout=280, env=os.environ | {"XDG_STATE_HOME": str(state)},
    )  # fmt: skip
    print(*commands, tried.stdout, sep="\n")
    if len(commands) != 4 or tried.returncode != 0 or "data: {f32: [12, 24, 36]}" not in tried.stdout:
        return f"the commands ended with status {tried.returncode}"
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
