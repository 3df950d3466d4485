#!/bin/sh
# build.sh SOURCE WHEELS: build the package's wheel from its source.
set -eu
source=$1 wheels=$2
tools=$(mktemp -d)
trap 'rm -rf "$tools"' EXIT
python3 -m venv "$tools"
"$tools/bin/pip" install --quiet --disable-pip-version-check 'maturin>=1.9,<2'
cd "$source"
"$tools/bin/maturin" build --release --quiet --locked --interpreter python3 --out "$wheels"
