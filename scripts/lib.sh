# Functions that the scripts share; source it first. It changes to the repository's root, to which all paths are relative.
# shellcheck shell=bash
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# The project's own Python, once scripts/setup has made it; the system's python3 until then.
python_home=$PWD/build/deps/python
export PATH=$python_home/bin:$PATH

say() { printf '%s\n' "${0##*/}: $*"; }

fail() {
    say "$*" >&2
    exit 1
}

# quietly COMMAND...: prints the command's output only if it fails.
quietly() {
    local log status=0
    log=$(mktemp)
    "$@" </dev/null >"$log" 2>&1 || status=$?
    if [ "$status" -ne 0 ]; then cat "$log" >&2; fi
    rm -f "$log"
    return "$status"
}

# Headings have the seconds since the script began, so that a log shows what took long.
stage() { printf '\n== %s (at %d s)\n' "$*" "$SECONDS"; }

# usage: the comment under the script's first line is its help text.
usage() { sed -n '2,/^[^#]/{/^#/!d;s/^# \{0,1\}//;p}' "$0"; }
