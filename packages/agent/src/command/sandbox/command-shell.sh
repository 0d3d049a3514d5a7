# The shell around a command. A fence is the sandbox around one command.
#
#   command-shell.sh parked FILE           waits for a line of shell text on stdin, then runs the command in
#                                          FILE. Both of its outputs are one stream.
#   command-shell.sh open                  the same, but the line itself makes the shell the command.
#   command-shell.sh run PROGRAM WORDS...  runs a program. Its output is stdout, our report goes to stderr.
#
# All processes of a fence end with its first one, so nobody outside can see what the command left running.
# This shell is the first one. When the command has ended, it looks for other processes in the fence's /proc,
# and reports whether there are any, as the last output of a stream that we read. Its exit code is the command's
# own. Without a report the fence may have failed before this shell began.
#
# If no line comes, the shell kills itself, so that no exit code is mistaken for the command's.

# The line that starts a parked command names newlines so.
newline='
'

# Sets left if processes remain. Process 1 and our parent are bubblewrap; a zombie does not count.
look() {
  left=
  for process in /proc/[0-9]*; do
    case $process in /proc/1 | /proc/$PPID | /proc/$$) continue ;; esac
    { read -r _ && read -r _ && read -r _ state _; } < "$process/status" || continue
    case $state in [ZX]) ;; *) left=1 ;; esac
  done
}

case $1 in
  parked)
    IFS= read -r go || kill -9 $$
    exec 3>&1 </dev/null >/dev/null 2>&1
    . "$2" ;;
  open)
    IFS= read -r go || kill -9 $$
    exec </dev/null
    eval "${go#go}" ;;
  run)
    shift
    exec 3>&2 2>/dev/null
    (exec "$@" 2>&3 3>&-) ;;
esac
code=$?
look
# A process that is about to end, such as a process substitution, gets 50 ms.
[ -z "$left" ] || { sleep 0.05; look; }
# If nobody reads it any more, the exit code still counts.
trap '' PIPE
if [ -z "$left" ]; then printf '\0none left\n' >&3; else printf '\0left behind\n' >&3; fi
exit $code
