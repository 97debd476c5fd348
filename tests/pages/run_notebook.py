"""Runs the code of a notebook, cell by cell in one Python, in a copy of the repository, and compares what each prints
with what the notebook shows. With --write the notebook gets what they print instead.
usage: run_notebook.py NOTEBOOK BUILD_FOLDER [--write]"""

import contextlib
import io
import json
import os
import pathlib
import subprocess
import sys
import tempfile

from run_page import ROOT, agrees, copy_repository, environment

TIMEOUT_S = 240
CELLS = "--cells"  # this program in the copy: cells from its input, what they print as JSON


def code_cells(notebook):
    return [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]


def run_cells(sources):
    """What each prints; an exception ends the run."""
    names, printed = {"__name__": "__main__"}, []
    for number, source in enumerate(sources):
        with contextlib.redirect_stdout(io.StringIO()) as output:
            exec(compile(source, f"cell {number + 1}", "exec"), names)
        printed.append(output.getvalue())
    return printed


def run_in_copy(sources, build):
    with tempfile.TemporaryDirectory(prefix="gpu-worker-page-") as scratch:
        folder = pathlib.Path(scratch).resolve()
        copy_repository(folder, pathlib.Path(build).resolve())
        env = environment(folder, 0) | {"PYTHONPATH": str(folder / "scripts/python")}
        ended = subprocess.run([sys.executable, "-B", __file__, CELLS], cwd=folder / "config/examples", env=env,
                               input=json.dumps(sources), stdout=subprocess.PIPE, text=True, timeout=TIMEOUT_S)  # fmt: skip
    return json.loads(ended.stdout) if ended.returncode == 0 else None


def shown_by(cell):
    return "".join(text for output in cell["outputs"] for text in output["text"])


def write(path, notebook, printed):
    for count, (cell, text) in enumerate(zip(code_cells(notebook), printed), 1):
        output = {"name": "stdout", "output_type": "stream", "text": text.splitlines(keepends=True)}
        cell["outputs"], cell["execution_count"] = [output] if text else [], count
    path.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n")


def main(name, build, *options):
    path = ROOT / name
    notebook = json.loads(path.read_text())
    printed = run_in_copy(["".join(cell["source"]) for cell in code_cells(notebook)], build)
    if printed is None:
        return 1
    if options == ("--write",):
        write(path, notebook, printed)
        return 0
    faults = [
        f"{name}: cell {number} shows\n{shown_by(cell)}and prints\n{text}"
        for number, (cell, text) in enumerate(zip(code_cells(notebook), printed), 1)
        if not agrees(shown_by(cell).splitlines(), text.splitlines())
    ]
    print("\n\n".join(faults) or f"{len(printed)} cells of {name} print what it says")
    return 1 if faults else 0


if __name__ == "__main__":
    if sys.argv[1:] == [CELLS]:
        json.dump(run_cells(json.load(sys.stdin)), os.fdopen(os.dup(1), "w"))
        sys.exit()
    sys.exit(main(*sys.argv[1:]))
