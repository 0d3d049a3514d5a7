# The beginning of launcher.sh on systems with ps(1) and sysctl(8), such as macOS. It needs bash, for job control
# without a terminal.

SYSTEM_PATH=/usr/bin:/bin:/usr/sbin:/sbin:

# readStart PID: sets state and start, the number YYYYMMDDhhmmss, as processes.ts does. Both are empty if there is
# no such process, or if nobody can tell.
readStart() {
  state= start=
  set -- $(LC_ALL=C TZ=UTC0 ps -o stat= -o lstart= -p "$1" 2>/dev/null)
  [ $# -eq 6 ] || return
  months=JanFebMarAprMayJunJulAugSepOctNovDec before=${months%%"$3"*} day=$4 clock=$5
  [ ${#before} -lt 36 ] && [ $((${#before} % 3)) -eq 0 ] || return
  month=$((${#before} / 3 + 101))
  case $day in ?) day=0$day ;; esac
  start=$6${month#1}$day${clock%%:*}${clock#*:}
  start=${start%:*}${start##*:} state=$1
  case $start in *[!0-9]*) start= state= ;; esac
  [ ${#start} -eq 14 ] || start= state=
}

# isProcess PID START: whether exactly this process runs. A zombie does not.
isProcess() {
  readStart "$1"
  case $state in Z* | '') return 1 ;; esac
  [ "$start" = "$2" ]
}

# Sets now, in seconds since the start of the machine. The system moves the time of its start with its clock. Empty
# if nobody can tell.
readUptime() {
  now=
  set -- $(sysctl -n kern.boottime 2>/dev/null)
  case ${4%,} in *[!0-9]* | '') return ;; esac
  now=$(($(date +%s) - ${4%,}))
}

# startCommand N: job control gives the file `run` a process group, and lets it have INT and QUIT. Without job
# control again, `wait` takes no stopped command for one that has ended.
startCommand() {
  set -m
  (exec 6>&- 7<&-; . "./$1/run") &
  set +m
  child=$!
  readStart "$child"
  # Without its start time nobody could tell it from a later process: it never begins.
  [ -n "$start" ] || kill -9 "-$child"
  [ -z "$start" ] || echo "run $child $start" >&6
  wait "$child"
  code=$?
}

