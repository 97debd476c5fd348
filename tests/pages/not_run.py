"""The commands of pages that no test of pages runs, and why. A command that neither is run nor stands here fails the
test of its page; so does a line here that no page has any more."""

SETUP = "it installs packages; each run of scripts/test and .ci/run begins with it"
BUILD = "scripts/test builds this preset, and the page runs what is built"
TESTS = "it runs the tests, this one among them"

NOT_RUN = {
    "README.md": {
        "scripts/setup": SETUP,
        "cmake --preset release && cmake --build --preset release": BUILD,
    },
    "config/examples/README.md": {"scripts/setup kafka": SETUP},
    "CONTRIBUTING.md": {
        "scripts/setup test     # installs what is missing (Debian 12), nothing else": SETUP,
        "scripts/test           # builds with gcc and clang, runs every test": TESTS,
    },
}
