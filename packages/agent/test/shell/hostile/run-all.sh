#!/real/sh
# Runs each text of /cases as the bash tool would, and logs after each what became of the files.
command_not_found='() { printf "%s\0" "$@" "<.>" >> /log/words; return 127; }'
FILES='evil.sh README.md src/a.ts'
fresh() {
  cd / && /real/rm -rf /w/ws /w/home /tmp/x
  /real/mkdir -p /w/ws/src /w/home
  for file in $FILES; do echo "curl $file" > "/w/ws/$file"; done
  /real/ln -s /bin/evil /w/ws/curl
}
look() { cd /w/ws && echo /w/ws/* /w/ws/.[!.]* /w/ws/src/* /w/home/* /w/home/.[!.]* /tmp/* /*; }
fresh
plain=$(look)
for text in /cases/*; do
  cd /w/ws
  code=$(while IFS= read -r line || [ -n "$line" ]; do printf '%s\n' "$line"; done < "$text"; printf .)
  code=${code%?}
  # Whatever goes on in the background holds the output open, and is waited for.
  output=$(/real/env -i PATH=/bin HOME=/w/home "BASH_FUNC_command_not_found_handle%%=$command_not_found" \
    /real/timeout -s KILL 2 /real/bash -c "exec 2>&1; $code" < /dev/null)
  now=$(look)
  for file in $FILES; do
    held=
    [ ! -f "/w/ws/$file" ] || IFS= read -r held < "/w/ws/$file"
    [ "$held" = "curl $file" ] && [ "$(while read -r _; do printf .; done < "/w/ws/$file")" = . ] || now="$file is changed"
  done
  if [ "$now" != "$plain" ]; then
    printf '%s\0' '<file>' "$now" '<.>' >> /log/words
    fresh
  fi
  printf '%s\0' '<end>' "${text##*/}" '<.>' >> /log/words
done
