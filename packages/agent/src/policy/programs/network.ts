/** Rows of programs that reach other machines, and of databases. */

import { programName } from '../paths.js';
import { anyWord, matchesOption, type Rows, type Words } from './program.js';

/** The words that are no options. */
export const operandsIn = (words: Words): readonly string[] =>
  words.filter((word): word is string => word !== null && !word.startsWith('-'));

/** A URL of this machine. */
const LOCAL =
  /^[a-z]+:\/\/(?:[^/@\s]*@)?(?:localhost|127\.[\d.]+|0\.0\.0\.0|\[::1?\])(?::\d+)?(?:[/?#]|$)/i;
/** Endings of hosts that are no endings of files. */
const HOST = /^[\w-]+(?:\.[\w-]+)*\.(?:com|org|net|io|dev|app|ai|edu|gov|eu|de|uk)(?:[:/]|$)/i;
const isRemoteUrl = (word: string): boolean =>
  !LOCAL.test(word) && (/^(?:https?|ftp):\/\/./i.test(word) || HOST.test(word));

/** Whether git reaches this remote by the network: an address, and no path. */
export const isRemoteAddress = (address: string): boolean =>
  /^(?:https?|ssh|git|ftps?):\/\//i.test(address)
    ? !LOCAL.test(address)
    : /^[^/\s]+:(?!\/\/)/.test(address);

const loadsUrl = (words: Words): string | null =>
  operandsIn(words).some(isRemoteUrl) ? programName(words[0] ?? '') : null;

export const NETWORK_PROGRAMS: Rows = {
  curl: {
    risky: `
      -o -O -K -T -F -D -c -J -d --remote-name --config --upload-file --form
      --data-binary --dump-header --cookie-jar --trace-ascii --libcurl --stderr --engine
      --proxy --output-dir --remote-header-name --etag-save --hsts --alt-svc`,
    harmless: `
      -s -S -L -f -I -i -v -H -A -X -m -4 -6 --silent --show-error --location --fail --head
      --include --verbose --header --user-agent --request --max-time --connect-timeout --retry
      --compressed --http1.1 --http2`,
    losses: {
      writes: `
        -o --output -D --dump-header -c --cookie-jar --trace-ascii --libcurl --stderr
        --etag-save`,
    },
    network: loadsUrl,
  },
  wget: {
    risky: `
      -e -O -P -o -a -i --execute --output-document --directory-prefix --use-askpass --config
      --post-file --body-file --input-file --output-file --append-output`,
    harmless:
      '-q -nv -c -S --quiet --no-verbose --continue --spider --timeout --tries --server-response',
    losses: { writes: '-O --output-document -o --output-file' },
    network: loadsUrl,
  },
  ssh: { risky: '-o -F -W -L -R -D -J -S -E -I -w' },
  scp: { risky: '-o -F -S -J' },
  sftp: { risky: '-o -F -S -b -J -D' },
  'ssh-keygen': { risky: '-D -f -w -P' },
  tcpdump: { risky: '-z -w -Z -F' },
  crontab: { risky: anyWord },
  'psql mysql mariadb': {
    risky: (word) =>
      /\\|\b(program|system|pager|tee|source|outfile|dumpfile|load_file)\b/i.test(word) ||
      matchesOption(
        word,
        `
        -f -o -L --file --output --log-file --init-command --plugin-dir
        --defaults-file --defaults-extra-file`,
      ),
  },
};
