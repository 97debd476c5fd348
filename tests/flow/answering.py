"""A program whose result says which of its two images ran: for tests of what is installed while workers run."""

import json
import shutil

from worker_flow import BUILD, write_aside

import gpu_worker as gw

IMAGES = {1: BUILD / "tests/pipeline/libanswer_first.so", 2: BUILD / "tests/pipeline/libanswer_second.so"}
MANIFEST = json.dumps({
    "name": "answer", "images": [{"kind": "cpu", "file": "answer.so"}],
    "entries": [{"name": "answer", "args": [{"name": "y", "buffer": "out", "type": "UINT32"}, {"name": "n", "value": "u32"}]}]})


def install_answer(programs, image):
    """Whoever reads it meanwhile finds it whole, with this image or the one before."""
    folder = programs / "answer"
    folder.mkdir(exist_ok=True, parents=True)
    aside = folder / ".answer.so.aside"
    shutil.copy(IMAGES[image], aside)
    aside.replace(folder / "answer.so")
    write_aside(folder / "program.yaml", MANIFEST)


def answer(number):
    """The job's result holds the number of the image that ran it."""
    return gw.job(f"job-{number}", buffers={"y": {"bytes": 4}},
                  steps=[gw.step("answer", ["y", gw.u32(1)], elements=1)], outputs=["y"])


def answered_by(result):
    return int.from_bytes(result["outputs"][0]["data"], "little")
