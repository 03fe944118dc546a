#!/bin/sh
# Builds the image and lets a daemon in it keep a small web for some days, without a network:
#   scripts/deploy/try_image.sh [ARGUMENT OF podman build…]
# Its base is that of the Containerfile; without a registry, an empty Debian 12 will do:
#   debootstrap --variant=minbase --include=ca-certificates,python3,python3-venv bookworm DEBIAN
#   tar -C DEBIAN -c . | podman import - localhost/debian-python
#   scripts/deploy/try_image.sh --build-arg PYTHON=localhost/debian-python
set -eu
cd "$(dirname "$0")/../.."
podman build --format docker -f scripts/deploy/Containerfile -t freshet "$@" .
podman run --rm --network none freshet --version
podman run --rm --network none --entrypoint sh freshet -c '
    freshet simulate --web showcase --budget 600/day --days 3 --seed 7 --db web.db &&
    freshet status --db web.db && ! command -v cc gcc clang'
