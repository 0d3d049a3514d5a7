/**
 * The launcher: a shell that starts commands, one after the other, so that the agent never forks.
 *
 * 1. Orders come on descriptor 4: `p N` parks command N, `g N WORDS` starts it, `x N` discards it. The end of the
 *    orders discards the parked command.
 * 2. A command is a pipeline of three. The gate waits for `g`, claims the command and passes WORDS on. The runner runs
 *    `N/run`, and writes `run PID START` and `exit CODE` to `N/status`. The pump writes the output to `N/out`,
 *    `N/tail.1`, … and then `eof` to `N/status`.
 * 3. Descriptor 3 is open as long as the agent lives. When it closes, the whole process group is killed.
 * 4. It runs in the folder of the commands with an empty environment, in a process group of its own.
 *
 * `$1` is the absolute path of dd. `$2` and `$3` say how many reads, of at most 64 kB each, make the first piece of
 * output and each further one. While four further pieces wait to be read and removed, the command waits too.
 *
 * Descriptor 0 must not be a socket, or bash would read its start files. Any POSIX shell works. Pipelines instead of
 * `&`, because commands would inherit that INT and QUIT are ignored after `&`. dd instead of cat and head, because it
 * never reads more than it writes.
 */
export const LAUNCHER_SCRIPT = `
PATH=\${1%/*} first=$2 more=$3
set -C
exec 7<&3 3<&- <&4 4<&-
(while read -r _; do :; done <&7; kill -9 0) </dev/null >/dev/null 2>&1 &
gate() {
  while read -r word number rest; do
    [ "$number" = "$1" ] || continue
    case $word in
      g) true 2>/dev/null >"$1/claim" && printf '%s\\n' "go $rest"; return ;;
      x) return ;;
    esac
  done
}
runner() {
  (
    read -r pid _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ start _ </proc/self/stat
    echo "run $pid $start" >&6
    exec 6>&- 7<&-
    . "./$1/run"
  )
  echo "exit $?" >&6
}
countReads() {
  while read -r line; do
    case $line in
      [0-9]*+[0-9]*' records in') line=\${line%% *}; count=$((\${line%+*} + \${line#*+})) ;;
    esac
  done
}
pump() {
  piece=out last=0 reads=$2
  while :; do
    dd bs=65536 count=$reads of="$1/$piece" 2>|"$1/count" || { echo cut >&6; cat >/dev/null; break; }
    count=0
    countReads <"$1/count"
    [ $count -eq $reads ] || break
    last=$((last + 1)) piece=tail.$last reads=$3
    while [ -e "$1/tail.$((last - 4))" ]; do sleep 0.02 || break; done
  done
  echo eof >&6
}
while read -r word number _; do
  [ "$word" = p ] || continue
  exec 6<>"$number/status"
  gate "$number" | runner "$number" | pump "$number" "$first" "$more"
  exec 6>&-
done
`;
