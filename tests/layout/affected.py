#!/usr/bin/env python3
"""Which tests a change can break.

affected.py BUILD_FOLDER PATH...  prints a regular expression for `ctest -R`; PATH is a file or folder of the repository
"""

import json
import pathlib
import re
import subprocess
import sys

import layering

ROOT = pathlib.Path(__file__).resolve().parents[2]
# Tests of whole workers and of other places, by the place that they show most of. A folder of worker/ has its own tests
# and those of the folders that include it besides.
SHOWN_BY = {
    "worker/base": [],
    "worker/settings": ["flow/reload", "cli/"],
    "worker/broker": ["world/(world|scenarios|answers|(members_)?conformance)$", "flow/kafka_short", "flow/embedded", "flow/local", "flow/file"],
    "worker/state": ["flow/supervise", "containment/poison$"],
    "worker/job": ["flow/file"],
    "worker/decode": ["schemas/", "fuzz/replay_", "differential/batched"],
    "worker/quarantine": ["containment/"],
    "worker/key_order": ["world/scenarios", "flow/kafka_short"],
    "worker/program": ["programs/", "fuzz/replay_", "python/kit", "hardening/H3_manifests"],
    "worker/plan": ["differential/"],
    "worker/gpu": ["differential/", "programs/", "model/"],
    "worker/http": ["flow/tracing", "hardening/tls_"],
    "worker/blobs": ["hardening/tls_"],
    "worker/metrics": ["flow/supervise", "deploy/observability"],
    "worker/trace": ["flow/tracing"],
    "worker/prepare": ["differential/"],
    "worker/batch": ["differential/", "flow/file"],
    "worker/publish": ["flow/file", "flow/embedded", "flow/kafka_short"],
    "worker/pipeline": ["world/scenarios", "world/answers", "flow/file", "flow/reload", "flow/spare", "flow/kafka_short", "differential/batched"],
    "worker/process": ["flow/supervise"],
    "worker/supervise": ["flow/supervise", "flow/spare", "hardening/H20_"],
    "worker/cli": ["flow/file", "flow/log", "flow/explain", "flow/reload", "flow/embedded", "flow/local"],
    "worker/bench": [],
    "worker/cpu_driver": ["gpu/", "differential/", "programs/"],
    "worker/main.c": ["cli/"],
    "config/programs": ["programs/", "python/kit", "pages/config/programs"],
    "config": ["pages/config", "python/", "cli/readme"],
    "schemas": ["schemas/", "decode/", "fuzz/replay_", "python/client", "python/progress"],
    "deploy": ["deploy/"],
    "scripts/python": ["python/", "quickstart", "flow/client", "flow/local", "pages/scripts"],
    "scripts/quickstart": ["quickstart"],
    "scripts/kafka": ["flow/kafka_fetch", "flow/kafka_short"],
    "tests/testing.h": [""],
    "tests/support": [""],
    "tests/world": ["world/", "broker/"],
    "tests/CMakeLists.txt": [""],
    "CMakeLists.txt": [""],
}


def list_tests(build):
    """{test: the folder below tests/ whose CMakeLists.txt lists it}."""
    found = subprocess.run(
        ["ctest", "--test-dir", build, "--show-only=json-v1"], check=True, capture_output=True, text=True)
    listing = json.loads(found.stdout)
    files, nodes = (listing["backtraceGraph"][name] for name in ("files", "nodes"))
    folders = {}
    for test in listing["tests"]:
        node = nodes[test["backtrace"]]
        while "parent" in node:
            node = nodes[node["parent"]]
        folders[test["name"]] = pathlib.Path(files[node["file"]]).parent.relative_to(ROOT / "tests").as_posix()
    return folders


def dependents(path):
    """Folders of worker/ that may include what a path below worker/ names: a folder, or a file of one."""
    folder, _, file = path.partition("/")
    header = str(pathlib.PurePath(path).with_suffix(".h"))
    return {name for name, allowed in layering.LAYERS.items()
            if folder in allowed or any(item == header or not file and item.startswith(folder + "/") for item in allowed)}


def patterns_of(path):
    """The longest entry of SHOWN_BY that a path is or lies below; None if there is none."""
    parts = pathlib.PurePath(path).parts
    for length in range(len(parts), 0, -1):
        patterns = SHOWN_BY.get("/".join(parts[:length]))
        if patterns is not None:
            return patterns
    return None


def is_below(path, folder):
    return path == folder or path.startswith(folder + "/")


def own_tests(tests, path):
    """Tests that a path below tests/ belongs to: those of one file, or else of its folder."""
    own = re.sub(r"_test\.(c|py)$", "", path)
    if own in tests:
        return {own}
    folder = path if (ROOT / "tests" / path).is_dir() else str(pathlib.PurePath(path).parent)
    return {test for test, listed_in in tests.items() if is_below(listed_in, folder)}


def affected_by(tests, path):
    if path.endswith((".md", ".ipynb")):
        return {"pages/lint", "pages/" + path} & set(tests)
    place, _, below = path.partition("/")
    patterns = patterns_of(path)
    if place == "tests" and patterns is None:
        return own_tests(tests, below)
    found = {test for test in tests if any(re.match(pattern, test) for pattern in patterns or [])}
    if place == "worker":
        folders = {below.partition("/")[0], *dependents(below)}
        found |= {test for test, listed_in in tests.items() if listed_in in folders}
    return found


def affected(tests, paths):
    always = {test for test in tests if test.startswith("layout/")}
    return sorted(always.union(*(affected_by(tests, path) for path in paths)))


def main(arguments):
    if len(arguments) < 2:
        print(__doc__.strip(), file=sys.stderr)
        return 2
    paths = []
    for argument in arguments[1:]:
        path = pathlib.Path(argument).resolve()
        if not path.exists() or not path.is_relative_to(ROOT) or path == ROOT:
            print(f"affected: {argument} is no file or folder of this repository", file=sys.stderr)
            return 2
        paths.append(path.relative_to(ROOT).as_posix())
    names = affected(list_tests(arguments[0]), paths)
    print("^(" + "|".join(re.sub(r"([.+*?^$()\[\]])", r"\\\1", name) for name in names) + ")$")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
