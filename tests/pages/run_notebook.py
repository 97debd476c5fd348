"""Runs the code of a notebook in a kernel of Jupyter, in a copy of the repository, and compares what each cell prints with
what the notebook shows. With --write the notebook gets what they print instead. Ends with 77 where there is no Jupyter.
usage: run_notebook.py NOTEBOOK BUILD_FOLDER [--write]"""

import json
import os
import pathlib
import subprocess
import sys
import sysconfig
import tempfile

from run_page import ROOT, agrees, copy_repository, environment

TIMEOUT_S = 240
CELLS = "--cells"  # this program in the copy, with Jupyter's Python: cells from its input, what they print as JSON
JUPYTER = ROOT / "build/deps/notebook/bin/python3"
SKIPPED = 77


def code_cells(notebook):
    return [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]


def run_cells(sources):
    """What each prints; an exception ends the run."""
    import nbclient
    import nbformat

    cells = [nbformat.v4.new_code_cell(source) for source in sources]
    nbclient.NotebookClient(nbformat.v4.new_notebook(cells=cells), timeout=TIMEOUT_S, kernel_name="python3").execute()
    return ["".join(output["text"] for output in cell["outputs"] if output.get("name") == "stdout") for cell in cells]


def run_in_copy(sources, build):
    with tempfile.TemporaryDirectory(prefix="gpu-worker-page-") as scratch:
        folder = pathlib.Path(scratch).resolve()
        copy_repository(folder, pathlib.Path(build).resolve())
        # The kernel is of Jupyter's Python, and finds what the client needs beside that which runs this program.
        packages = os.pathsep.join([str(folder / "scripts/python"), sysconfig.get_path("platlib")])
        ended = subprocess.run([JUPYTER, "-B", __file__, CELLS], cwd=folder / "config/examples",
                               env=environment(folder, 0) | {"PYTHONPATH": packages}, input=json.dumps(sources),
                               stdout=subprocess.PIPE, text=True, timeout=TIMEOUT_S)  # fmt: skip
    return json.loads(ended.stdout) if ended.returncode == 0 else None


def shown_by(cell):
    return "".join(text for output in cell["outputs"] for text in output["text"])


def write(path, notebook, printed):
    for count, (cell, text) in enumerate(zip(code_cells(notebook), printed), 1):
        output = {"name": "stdout", "output_type": "stream", "text": text.splitlines(keepends=True)}
        cell["outputs"], cell["execution_count"] = [output] if text else [], count
    path.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n")


def main(name, build, *options):
    if not JUPYTER.exists():
        print("scripts/setup notebook installs what this takes")
        return SKIPPED
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
