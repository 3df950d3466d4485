#!/bin/sh
# install.sh WHEELS TARGET: install the wheel, with what serving needs, into an environment of its own.
set -eu
wheels=$1 target=$2
python3 -m venv "$target"
wheel=$(ls "$wheels"/fliphat-*.whl)
"$target/bin/pip" install --quiet --no-cache-dir --disable-pip-version-check "$wheel[serve,postgres]"
"$target/bin/fliphat" --version
