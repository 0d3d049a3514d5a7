#!/real/sh
# Stands for every program: logs its own path and words, and what was exported to it; then runs the command that its
# words name, if it is a program that does.
# One write for each: programs of a pipeline log at the same time.
one() { printf '%s\0' "$@" '<.>'; }
{
  export -p | while read -r _ set; do
    case $set in
      OLDPWD=* | PWD=* | SHLVL=* | _=* | PATH=*) ;;
      HOME=*) [ "$HOME" = /w/home ] || one '<variable>' HOME ;;
      [A-Za-z_]*=*) one '<variable>' "${set%%=*}" ;;
    esac
  done
  [ "$PATH" = /bin ] || one '<variable>' PATH
  one "$0" "$@"
} >> /log/words
case ${0##*/} in
  env | nohup | nice | setsid | stdbuf | sudo | timeout)
    while :; do
      case ${1-} in
        -S) set -- ${2-} ;;
        -S*) set -- ${1#-S} ;;
        -u | -k | -n | -o) shift 2 ;;
        *=*) [ "${1#-}" = "$1" ] && export "$1"; shift ;;
        -* | [0-9]*) shift ;;
        *) break ;;
      esac
    done
    [ $# -eq 0 ] || exec "$@"
    ;;
  xargs)
    read -r line
    while :; do
      case ${1-} in
        -a) read -r line < "$2"; shift 2 ;;
        -I{}) shift; [ "${1-}" = '{}' ] && shift && set -- "$line" "$@" ;;
        -I | -n | -P | -L) shift 2 ;;
        -*) shift ;;
        *) break ;;
      esac
    done
    [ $# -eq 0 ] || exec "$@" $line
    ;;
  find)
    while [ $# -gt 0 ]; do
      case $1 in
        -exec | -execdir | -ok | -okdir)
          shift
          command=
          while [ $# -gt 0 ] && [ "$1" != ';' ] && [ "$1" != '+' ]; do command="$command '$1'"; shift; done
          eval "$command" > /dev/null 2>&1
          ;;
        -delete | -fprint | -fprintf | -fls) one '<file>' "find $1" >> /log/words ;;
      esac
      [ $# -eq 0 ] || shift
    done
    ;;
  cat) [ $# -gt 0 ] || while IFS= read -r line; do printf '%s\n' "$line"; done ;;
  echo) printf '%s\n' "$*" ;;
  tee) for file; do case $file in -*) ;; *) echo x > "$file" ;; esac; done ;;
  bash | sh | dash) exec /real/bash "$@" ;;
  false) exit 1 ;;
  *) echo said ;;
esac
read -r code < /real/exit
exit "$code"
