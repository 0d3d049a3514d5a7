# A shell that starts commands, one after the other, so that the agent never forks (docs/proof/reliability.md).
# It outlives the agent if the agent is killed. Any POSIX shell works.
#
#   launcher.sh DD FIRST MORE (keep|end) ALIVE
#
# It runs in the folder of the commands, with an empty environment, in a process group of its own.
# Descriptor 0 must not be a socket, or bash would read its start files.
# Descriptor 4 brings orders: `p N` parks command N, `g N WORDS` starts it, `x N` discards it. The end of
# the orders discards the parked command.
# Descriptor 3 is open as long as the agent lives: see guard.
#
# DD: absolute path of dd. It stands in for cat and head, because it never reads more than it writes.
# FIRST, MORE: the size of the first piece of output, and of each further one, in 64 kB.
# keep: a running command goes on after the agent's death.
# ALIVE: a pipe that the runner and the first process of a fence (the sandbox around one command) hold open
#   while the command runs; `status` names it. So processes in any pid namespace see whether it runs. The
#   command does not have the pipe.
#
# The text before this one is launcher-proc.sh or launcher-ps.sh: what the system tells of processes, and how a
# command gets a process group of its own.

PATH=$SYSTEM_PATH${1%/*} first=$2 more=$3 outlives=$4 alive=$5
set -C
exec 7<&3 3<&- <&4 4<&-

# isAttached N: whether a later agent follows command N.
isAttached() {
  read -r pid start <"$1/attached" && isProcess "$pid" "$start"
}

# readOrder N: sets pid and due. Fails if command N does not run.
readOrder() {
  pid= start= ended= due=
  while read -r word one two; do
    case $word in
      run) pid=$one start=$two ;;
      exit) ended=1 ;;
    esac
  done <"$1/status"
  [ -e "$1/claim" ] && [ -z "$ended" ] && [ -n "$pid" ] && isProcess "$pid" "$start" || return 1
  read -r due <"$1/order"
}

# keepDeadline N: kills the running command N, with pid and due of readOrder, if its time is over or if its
# file `why` says `cancelled`: an agent in another pid namespace can't kill it. A later agent that follows a
# command keeps its deadline itself. A command without a deadline gets one of an hour, so that nothing runs
# for ever.
keepDeadline() {
  isAttached "$1" && return
  why=
  read -r why <"$1/why"
  if [ "$why" != cancelled ]; then
    readUptime
    [ "$due" = - ] && due=$(((orphanedAt + 3600) * 1000))
    [ "${now%.*}" -gt "$((due / 1000))" ] 2>/dev/null || return
    echo deadline >"$1/why"
  fi
  readOrder "$1" && kill -9 "-$pid" "$pid"
}

# Waits for the agent's end. The word `end` on descriptor 7 (at first 3) kills the whole process group. If it
# closes without that word, the agent was killed: then the guard keeps deadlines, each second, until none of
# the commands runs.
guard() {
  end=
  while read -r word; do
    [ "$word" = end ] && end=1
  done <&7
  [ "$outlives" = keep ] && [ -z "$end" ] || kill -9 0
  echo >|orphaned
  readUptime
  orphanedAt=${now%.*}
  while :; do
    running=
    for status in */status; do
      readOrder "${status%/*}" || continue
      running=1
      keepDeadline "${status%/*}"
    done
    [ -n "$running" ] || kill -0 $$ || break
    sleep 1 || break
  done
}
(guard) </dev/null >/dev/null 2>&1 &
[ "$outlives" = keep ] && mkfifo "$alive" 2>/dev/null

# gate N: waits for the order to start command N, claims it and passes WORDS on.
gate() {
  while read -r word number rest; do
    [ "$number" = "$1" ] || continue
    case $word in
      g) true 2>/dev/null >"$1/claim" && printf '%s\n' "go $rest"; return ;;
      x) return ;;
    esac
  done
}

# runner N: runs the file `run`, and writes `run PID START` and `exit CODE UPTIME` to `status` (descriptor 6).
# `startCommand` sets `code`.
# The mark at the end of the output says that all output of the command itself is before it. A process that the
# command has detached may write more.
runner() {
  sync=
  [ -p "$alive" ] && command exec 8<>"$alive" && echo "alive $alive" >&6 && sync='--sync-fd 8'
  startCommand "$1"
  readUptime
  echo "exit $code${now:+ $now}" >&6
  printf '\0ended\n'
}

# Sets count to the number of reads that dd reports.
countReads() {
  while read -r line; do
    case $line in
      [0-9]*+[0-9]*' records in') line=${line%% *}; count=$((${line%+*} + ${line#*+})) ;;
    esac
  done
}

# makeRoom N PIECE: waits until somebody has read a piece. After the agent's death nobody does: then the
# piece is removed, and `removed` says how long it was.
makeRoom() {
  if [ -e orphaned ] && ! isAttached "$1" 2>/dev/null; then
    echo "$2" $(wc -c <"$1/tail.$2") >>"$1/removed"
    rm "$1/tail.$2"
  else
    sleep 0.02
  fi
}

# pump N FIRST MORE: writes the output to `out`, `tail.1`, `tail.2`, ... and then `eof` to `status`. While four
# further pieces wait to be read and removed, the command waits too. A piece goes on until it has its size: dd
# counts reads, and one may be as short as a line. So a piece may be an eighth too long.
pump() {
  piece=out last=0 size=$2 reads=$2
  while :; do
    dd bs=65536 count=$reads 2>|"$1/count" >>"$1/$piece" || { echo cut >&6; cat >/dev/null; break; }
    count=0
    countReads <"$1/count"
    [ $count -eq $reads ] || break
    missing=$((size - $(wc -c <"$1/$piece") / 65536))
    if [ $missing -gt 0 ]; then
      reads=$((missing > size / 8 ? missing : size / 8))
      continue
    fi
    last=$((last + 1)) piece=tail.$last size=$3 reads=$3
    while [ -e "$1/tail.$((last - 4))" ]; do makeRoom "$1" $((last - 4)) || break; done
  done
  echo eof >&6
}

# A command is a pipeline of three, and not a job of `&`, from which it would inherit that INT and QUIT are
# ignored.
while read -r word number _; do
  [ "$word" = p ] || continue
  exec 6<>"$number/status"
  gate "$number" | runner "$number" | pump "$number" "$first" "$more"
  exec 6>&-
done
