#!/bin/sh
# sandbox-exec(1) as macOS has it, but for the fence: it notes the places
# of the rules, and starts the command.
[ "$1" = -p ] || { echo 'sandbox-exec: no profile' >&2; exit 64; }
shift 2
while case $1 in -D?*=*) ;; *) false ;; esac; do echo "${1#*=}" >>'@VALUES@.places'; shift; done
[ "$1" = -- ] && shift
exec "$@"
