#!/bin/sh
# sysctl(8) as macOS has it: the two values that Pawl asks for.
read -r boot <<END
$(sed -n 2p '@VALUES@')
END
case $* in
  '-n kern.boottime') echo "{ sec = $boot, usec = 413 } Sun Nov 29 00:00:00 2026" ;;
  '-n kern.bootsessionuuid') sed -n 3p '@VALUES@' ;;
  *) echo "sysctl: unknown oid '$2'" >&2; exit 1 ;;
esac
