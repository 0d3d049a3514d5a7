# The beginning of launcher.sh where processes are seen in /proc. Times are read from /proc/uptime, because the
# clock of the wall can jump.

SYSTEM_PATH=

# isProcess PID START: whether exactly this process runs. A zombie does not.
isProcess() {
  started=$2
  read -r line <"/proc/$1/stat" || return 1
  set -- ${line##*) }
  case $1 in [ZX]) return 1 ;; esac
  [ "${20}" = "$started" ]
}

# Sets now, in seconds since the start of the machine.
readUptime() {
  read -r now _ </proc/uptime
}

# startCommand N: the file `run` starts bubblewrap or setsid, and so a process group.
startCommand() {
  (
    read -r pid _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ start _ </proc/self/stat
    echo "run $pid $start" >&6
    exec 6>&- 7<&-
    . "./$1/run"
  )
  code=$?
}

