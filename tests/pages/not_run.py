"""The commands of pages that no test of pages runs, and why. A command that neither is run nor stands here fails the
test of its page; so does a line here that no page has any more."""

SETUP = "it installs packages; each run of scripts/test and .ci/run begins with it"
BUILD = "scripts/test builds this preset, and the page runs what is built"
TESTS = "it runs the tests, this one among them"
INSTALL = "tests/deploy/install_test.py installs into folders of its own"
PACKAGE = "tests/deploy/package_test.py does so in a Debian of its own"
UNIT = "it wants a machine that systemd runs; tests/deploy/unit_test.py asks systemd about the unit"
IMAGE = "tests/deploy/image_test.py does so through buildah"
CLIENT = "tests/python/package_test.py installs it into a folder of its own"
NOTEBOOK = "it brings Jupyter; tests/python/package_test.py installs the client, and run_page.py has it on its path"
CLUSTER = "it needs a registry or a cluster; deploy/helm/chart renders these values and checks them as a cluster would"

NOT_RUN = {
    "README.md": {
        "scripts/setup": SETUP,
        "cmake --preset release && cmake --build --preset release": BUILD,
        "scripts/setup package && (cd build/release && cpack)": PACKAGE,
        "sudo apt-get install ./build/release/gpu-worker_0.1.0-1_amd64.deb": PACKAGE,
        "docker build -f deploy/container/Dockerfile -t registry.example/gpu-worker:0.1.0 .": IMAGE,
        "docker push registry.example/gpu-worker:0.1.0": CLUSTER,
        "helm install gpu-worker deploy/helm/gpu-worker --set image.repository=registry.example/gpu-worker \\\n"
        "    --set config.kafka.bootstrap_servers=kafka:9092": CLUSTER,
    },
    "deploy/README.md": {
        "scripts/setup package": SETUP,
        "cmake --preset release && cmake --build --preset release": PACKAGE,
        "cmake --install build/release --prefix /usr/local": INSTALL,
        "(cd build/release && cpack)": PACKAGE,
        "apt-get install ./build/release/gpu-worker_0.1.0-1_amd64.deb": PACKAGE,
        "gpu-worker check --config /etc/gpu-worker/worker.yaml": PACKAGE,
        "systemctl enable --now gpu-worker": UNIT,
        "docker build -f deploy/container/Dockerfile -t gpu-worker .": IMAGE,
        "docker run --read-only --gpus all -v gpu-worker-state:/var/lib/gpu-worker \\\n"
        '    -v "$PWD/worker.yaml:/etc/gpu-worker/worker.yaml:ro" gpu-worker': IMAGE,
        "scripts/setup image": SETUP,
        'docker export "$(docker create gpu-worker)" | (mkdir -p build/image && tar -C build/image -x)': IMAGE,
        "deploy/container/sbom build/image build/gpu-worker.spdx.json": IMAGE,
        "scripts/setup kafka": SETUP,
        "deploy/exercise --seed 3": "it takes minutes; the test deploy/exercise runs its short form",
    },
    "config/examples/README.md": {"scripts/setup kafka": SETUP},
    "config/programs/README.md": {
        "git clone $REPOSITORY gpu-worker && cd gpu-worker": "run_page.py types in a copy of the repository",
        "scripts/setup": SETUP,
        "cmake --preset release && cmake --build --preset release": BUILD,
        "python3 -m venv build/notebook": NOTEBOOK,
        "pip install ./scripts/python jupyterlab": NOTEBOOK,
        "jupyter lab": "it serves a browser; the same cells run as a program, centers.py",
    },
    "scripts/python/README.md": {
        "python3 -m venv build/client": CLIENT,
        "build/client/bin/pip install ./scripts/python": CLIENT,
    },
    "deploy/helm/gpu-worker/README.md": {
        "docker build -f deploy/container/Dockerfile -t registry.example/gpu-worker:0.1.0 .": IMAGE,
        "docker push registry.example/gpu-worker:0.1.0": CLUSTER,
        "helm install sweep deploy/helm/gpu-worker --set image.repository=registry.example/gpu-worker \\\n"
        "    --set config.kafka.bootstrap_servers=kafka:9092": CLUSTER,
    },
    "CONTRIBUTING.md": {
        "scripts/setup test     # installs what is missing (Debian 12), nothing else": SETUP,
        "scripts/test           # the same, then builds and runs what every change must pass": TESTS,
    },
}
