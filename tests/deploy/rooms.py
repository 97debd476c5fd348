"""Debian roots for tests of packages and images, through buildah: each is a container of its own, in a store that goes
with the test. Needs root, and what `scripts/setup image` brings."""

import os
import pathlib
import shutil
import subprocess
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
DEBIAN = ROOT / "build/deps/debian.tar"
WRITABLE = """\
set -e
mount -t proc proc "$1/proc"
mount --rbind /dev "$1/dev"
root=$1
shift
exec env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/ DEBIAN_FRONTEND=noninteractive /usr/sbin/chroot "$root" "$@"
"""
# Everything but the state is read-only, as with readOnlyRootFilesystem. `chroot` keeps no capability of another user.
READ_ONLY = """\
set -e
mount --bind "$1" "$1"
mount --bind "$2" "$1/var/lib/gpu-worker"
mount -t proc proc "$1/proc"
mount --rbind /dev "$1/dev"
mount -o remount,bind,ro "$1"
root=$1 user=$3
shift 3
exec env -i PATH=/usr/bin:/bin HOME=/ /usr/sbin/chroot --userspec="$user" "$root" "$@"
"""


def copy_sources(folder):
    """What `git clone` gives, and the header that scripts/setup has fetched already."""
    leave_out = shutil.ignore_patterns(".git", "build", "__pycache__")
    shutil.copytree(ROOT, folder, ignore=leave_out, symlinks=True)
    header = ROOT / "build/deps/cuda"
    if header.exists():
        shutil.copytree(header, folder / "build/deps/cuda")


class Rooms:
    """A store of images and containers; a context manager."""

    def __enter__(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="gpu-worker-rooms-"))
        return self

    def __exit__(self, *_):
        self.buildah("rm", "--all")
        shutil.rmtree(self.folder)

    def buildah(self, *arguments, **options):
        environment = os.environ | {"BUILDAH_ISOLATION": "chroot", "STORAGE_DRIVER": "vfs"}
        command = ["buildah", "--root", self.folder / "store", "--runroot", self.folder / "run", *arguments]
        done = subprocess.run(command, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, **options)
        if done.returncode != 0:
            raise RuntimeError(f"buildah {' '.join(map(str, arguments))}: {done.stdout}{done.stderr}")
        return done.stdout.strip()

    def make_base(self, name):
        """An image of a Debian with nothing installed."""
        container = self.buildah("from", "scratch")
        self.buildah("add", container, DEBIAN, "/")
        self.buildah("commit", "--quiet", "--rm", container, name)

    def root_of(self, image):
        """The root folder of a new container of `image`."""
        return pathlib.Path(self.buildah("mount", self.buildah("from", image)))


def run_apart(script, *arguments):
    """With mounts and processes of its own, which end with it."""
    command = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", "-c", script, "sh", *arguments]
    return subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=900)


def run_in(root, *command):
    """Runs `command` in `root` as root there."""
    return run_apart(WRITABLE, root, *command)


def run_read_only(root, state, user, *command):
    """Runs `command` in `root`, which it cannot write to, but for the folder `state`."""
    return run_apart(READ_ONLY, root, state, user, *command)
