#!/usr/bin/env bash
# usage: setup_venv.sh DIR   makes or refreshes the virtual environment of this checkout
set -eu
venv=$1
cd "$(dirname "$0")/.."

new_enough='import sys; sys.exit(sys.version_info < (3, 11))'
find_python() {
    for candidate in "${PYTHON:-python3}" python3.13 python3.12 python3.11; do
        if command -v "$candidate" >/dev/null 2>&1 && "$candidate" -c "$new_enough" >/dev/null 2>&1; then
            echo "$candidate"
            return
        fi
    done
    echo "Ringleader needs Python 3.11 or newer; found none (set PYTHON=/path/to/python to name one)." >&2
    return 1
}

if ! { [ -x "$venv/bin/python" ] && "$venv/bin/python" -c "$new_enough"; }; then
    python=$(find_python)
    echo "Making $venv with $("$python" --version)"
    if ! "$python" -m venv "$venv"; then
        echo "$python cannot make virtual environments: install its venv module (Debian: python3-venv)." >&2
        exit 1
    fi
fi
echo "Installing Ringleader and what its tests and demo need into $venv (a few minutes the first time)"
# Most of what is installed is never imported: the first process that needs a module compiles it.
install=("$venv/bin/python" -m pip install --no-compile --quiet --disable-pip-version-check --constraint constraints.txt)
# PySpark comes as source. Its wheel is thrown away once it is installed: compressing it took a third of this script.
"${install[@]}" --config-settings=--build-option=--compression=stored pyspark
"${install[@]}" --editable '.[dev]'
"$venv/bin/python" -m ringleader --version
touch "$venv/.ready"
