"""The commands of pages that no test of pages runs, and why. A command that neither is run nor stands here fails the
test of its page; so does a line here that no page has any more."""

SETUP = "it installs packages; each run of scripts/test and .ci/run begins with it"
BUILD = "scripts/test builds this preset, and the page runs what is built"
CLUSTER = "it needs a cluster; deploy/helm/chart renders these values and checks them as a cluster would"
TESTS = "it runs the tests, this one among them"

NOT_RUN = {
    "README.md": {
        "scripts/setup": SETUP,
        "cmake --preset release && cmake --build --preset release": BUILD,
    },
    "config/examples/README.md": {"scripts/setup kafka": SETUP},
    "deploy/helm/gpu-worker/README.md": {
        "helm install sweep deploy/helm/gpu-worker --set config.kafka.bootstrap_servers=kafka:9092": CLUSTER,
    },
    "CONTRIBUTING.md": {
        "scripts/setup test     # installs what is missing (Debian 12), nothing else": SETUP,
        "scripts/test           # builds with gcc and clang, runs every test": TESTS,
    },
}
