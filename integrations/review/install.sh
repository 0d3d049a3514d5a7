#!/usr/bin/env bash
# Installs Pawl, and bubblewrap with its profile of AppArmor where the runner lacks them.
set -euo pipefail

npm install --global --no-audit --no-fund "pawl@$VERSION"
command -v bwrap > /dev/null || {
  sudo apt-get update
  sudo apt-get install -y bubblewrap apparmor-profiles
}
profile=/usr/share/apparmor/extra-profiles/bwrap-userns-restrict
if [ -f "$profile" ] && command -v apparmor_parser > /dev/null; then
  sudo cp "$profile" /etc/apparmor.d/
  sudo apparmor_parser -r /etc/apparmor.d/bwrap-userns-restrict
fi
