#!/bin/sh
# Installs the wheel of this platform from a folder and lets a daemon keep a small web for some days:
#   scripts/deploy/try_wheel.sh DIST
set -eu
place="$(mktemp -d)"
trap 'rm -rf "${place}"' EXIT
python3 -m venv "${place}/env"
# First alone and from the folder: the index has another program of this name.
"${place}/env/bin/python" -m pip install --quiet --disable-pip-version-check \
    --no-index --no-deps --only-binary :all: --find-links "$1" freshet
"${place}/env/bin/python" -m pip install --quiet --disable-pip-version-check \
    --find-links "$1" freshet
cd "${place}"
env/bin/freshet --version
env/bin/freshet simulate --web showcase --budget 600/day --days 3 --seed 7 --db web.db
env/bin/freshet status --db web.db
