#!/bin/sh
# Runs as root while the image is built. VERSION is the option of the feature.
set -eu

if ! command -v npm > /dev/null; then
  echo 'pawl needs Node 20.19 or newer with npm: add "ghcr.io/devcontainers/features/node:1" to "features".' >&2
  exit 1
fi
npm install --global --no-audit --no-fund "pawl@${VERSION:-latest}"
pawl --version
