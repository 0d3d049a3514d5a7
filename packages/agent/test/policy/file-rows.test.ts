import assert from 'node:assert/strict';
import { test } from 'node:test';
import { reads } from '../../src/policy/command-options.js';
import type { ParsedCommand } from '../../src/policy/judged-call.js';
import { fileLossesIn, wipesWorkspace } from '../../src/policy/losses.js';
import { listWords } from '../../src/policy/paths.js';
import type { FileLoss, FileWord } from '../../src/policy/programs/file-losses.js';
import { commandMeaning } from '../../src/policy/programs/program-table.js';
import { readCommands } from '../../src/policy/shell/read-statements.js';
import { shellFacts } from '../../src/policy/shell/shell-facts.js';

// What the manuals say of programs that read, change and pack files, one line a case. The names
// before the first blank, joined by commas, are programs that behave alike.

/** Each line of a table for each of its programs: the command, and what is expected of it. */
const casesOf = (table: string): readonly (readonly [text: string, expected: string])[] =>
  table
    .trim()
    .split(/\n| \| /)
    .flatMap((row) => {
      const [command = '', expected = ''] = row.trim().split(/ ::(?: |$)/);
      const [names = '', ...words] = command.split(' ');
      return names.split(',').map((name) => [[name, ...words].join(' '), expected] as const);
    });

/** The first command of a text, as the judgements of the policy get it. */
const parse = (text: string): ParsedCommand => {
  const reading = readCommands(text);
  assert.equal(reading.kind, 'read', text);
  const { words = [] } = reading.kind === 'read' ? (reading.commands[0] ?? {}) : {};
  return {
    words: words.map((word) => word.text),
    patterns: words.map(({ pattern }) => pattern ?? null),
    assignments: [],
    writes: [],
    program: '/usr/bin/x',
  };
};

const showFile = (file: FileWord): string => {
  if (file.kind === 'unknown') return '?';
  return file.kind === 'path' ? file.text.replace('\n', '\\n') : `~${file.text}`;
};
const showLoss = (loss: FileLoss): string =>
  loss.kind === 'file'
    ? `${loss.isProduct === true ? '+' : ''}${showFile(loss.file)}`
    : `${loss.sources.map(showFile).join()} ${loss.moves ? '=>' : '->'} ${showFile(loss.to)}`;
/** Programs that write nothing, but with options of their own. */
const READING = listWords(`
  ls grep egrep fgrep stat du df pwd basename dirname realpath readlink which uname whoami id ps
  pgrep cmp comm cut tr nl column md5sum sha1sum sha224sum sha256sum sha384sum sha512sum b2sum cksum
  sum od hexdump strings tac rev seq sleep true false echo nproc uptime free fold fmt paste join
  expand unexpand base64 zcat cat head tail wc sort gsort uniq shuf gshuf find gfind fd fdfind rg
  file date diff jq xxd tree`);

type Table = {
  readonly title: string;
  readonly answer: (command: ParsedCommand, text: string) => string | Promise<string>;
  /** A case with another answer than the expected one. */
  readonly control: string;
  readonly cases: string;
};

const TABLES: readonly Table[] = [
  {
    // `?`: a name that is known only at run time. `~x`: a pattern. `+x`: it counts if it is there.
    // `a -> b`: a copy. `a => b`: a move.
    title: 'the words of a command name the files that it deletes or overwrites',
    answer: (command) => fileLossesIn(command).map(showLoss).join(' '),
    control: 'rm a ::',
    cases: `
  rm,grm,unlink,gunlink,srm,trash,trash-put,del-cli a -r b :: a b | rm -- -a :: -a
  rm a-b -* :: a-b ~-* | rm "$X" - *.log :: ? - ~*.log
  shred,gshred -n 3 --iterations 3 -s 5 --size 5 a :: a
  rimraf --tmp d --max-retries 1 --retry-delay 1 a :: a
  truncate,gtruncate -s 0 --size 0 -r b --reference b a :: a | mv,gmv a b :: a => b
  mv -n a /tmp/b :: a => /tmp/b | cp,gcp -r a b c :: a,b -> c | cp -t d a b :: a,b -> d
  cp --target-directory d a :: a -> d | cp --target=d a :: a -> d | cp -rtd a :: a -> d
  cp -t=d a :: a -> =d | cp -S .x --suffix .x a b :: a -> b | cp -S d a b :: a -> b | cp -n a b ::
  cp --no-clobber a b :: | cp --no-c a b :: | cp -nf a b :: a -> b | cp -n --force a b :: a -> b
  cp --parents a/b c :: ? -> c | cp a :: | cp :: | cp -- -a b :: -a -> b
  cp a{,.old} :: ~a{,.old} | cp $X :: ? | cp a -t "$X" :: a -> ?
  install,ginstall -m 6 --mode 6 -o u --owner u -g g --group g -S x --suffix x a b :: a -> b
  install -t d a :: a -> d | install -td -Sd a :: a -> d
  install --target-directory d a :: a -> d | install -d a b :: | install --directory a b ::
  ln,gln -f a b :: a -> b | ln --force a b :: a -> b | ln -s a b :: | ln -sf d/a :: d/a -> .
  ln -sf -S .x a :: a -> . | ln -sf --suffix .x a :: a -> . | ln -sf -t d a :: a -> d
  ln -sf -td a :: a -> d | ln -sf --target-directory=d a :: a -> d
  ln -sf --target-directory d a :: a -> d | ln -sf :: | rsync -a a b :: b | rsync a ::
  rsync a b c :: c | rsync -an a b :: | rsync --dry-run a b :: | rsync a host:b ::
  rsync a rsync://host/b ::
  rsync --remove-source-files host:a b :: b | rsync a b/c:d :: b/c:d | rsync a "$X" :: ?
  rsync --remove-source-files a b c :: a b c | rsync --remove-source-files a b host: :: a b
  rsync a b -e x --rsh x -f x --filter x --exclude x --include x --exclude-from x :: b
  rsync a b --include-from x --files-from x --log-file x --partial-dir x --backup-dir x :: b
  rsync a b --compare-dest x --copy-dest x --link-dest x -B x -T x --temp-dir x :: b
  rsync a b --max-size x --min-size x --bwlimit x --timeout x --chmod x --rsync-path x :: b
  rsync a b --suffix x --info x --out-format x --chown x --max-delete x --port x -M x :: b
  dd,gdd if=a of=b :: b | dd if=a xof=b of= :: | dd of=$'a\\nb' :: a\\nb | dd of="$X" :: ?
  dd of=a* :: ~a* | tee,gtee,sponge a b :: a b | tee,gtee,sponge -a b ::
  tee,gtee,sponge --append b :: | sed,gsed -i s/a/b/ f g :: f g | sed --in-place s/a/b/ f :: f
  sed --i=.x s/a/b/ f :: f | sed -aEnrsuzi p f :: f | sed -I p f :: f
  sed -n --line-length 5 p f :: | sed -i -l 5 --line-length 5 -E p f :: f | sed -i.save p f :: f
  sed -ie p f :: f | sed -i -e p -e p f g :: f g | sed -ni.bak --expression p f :: f
  sed -i --exp=p f :: f | sed -i -nf s f :: f | sed -i --file s f :: f | sed -i --fi=s f :: f
  sed p f :: | sed -i p *.txt :: ~*.txt | sed "$X" f :: | sed 'w out' f :: +out
  sed -n -e p -e 'w out' f :: +out | sed -n --expression 'w out' f :: +out | sed y/kw/ab/ f ::
  sed -n '1~2w out' f :: +out | sed -n /x/wout f :: +out | sed "s/a/b/gpI2w out" f :: +out
  sed "s|a|b|w out" f :: +out | sed -n "/x/ w out" f :: +out | sed -n "\\$w out" f :: +out
  sed -n "1,3w out" f :: +out | sed -n '2!w out' f :: +out | sed -n $'{w out\\n}' f :: +out
  sed "p;w out" f :: +out | sed -f "$X" f :: | awk,gawk,mawk -i inplace 1 f :: f
  awk --include inplace 1 f :: f | awk -i "$X" 1 f :: f
  awk -i inplace -v a=1 --assign a=1 -F : --field-separator : 1 f :: f
  awk -i inplace -f s f :: f | awk -i inplace --file s f :: f | awk -i inplace -e 1 f :: f
  awk -i inplace --source 1 f :: f | awk -i xinplace 1 f :: | awk 1 f ::
  awk '{ print > "out"; print >"b" }' f :: +out +b | yq -i .a=1 f :: f | yq --inplace .a=1 f :: f
  yq --in-place .a=1 f :: f | yq -i -o j -p y .a f :: f | yq -i --from-file s f :: f
  yq -iP f :: f | yq .a f :: | perl,ruby -pi -e 1 f :: f | perl -i s.pl f :: f
  perl -i -E 1 f :: f | perl -i -0777pe 1 f :: f | perl -acnlpsuwW0777i -e 1 f :: f
  perl -pi.save -e 1 f :: f | perl -Mlocale -i -pe 1 f :: f | perl -mlocale -I e -i -pe 1 f :: f
  ruby -rdate -i -pe 1 f :: f | perl -ne 1 -i f :: f | perl -ne 1 f :: | perl -ne 1 a-i f ::
  ruby --verbose -i s.rb f :: f
  patch -p 1 -d d -i x -B p -F 3 -z .o -D x --input x --strip 1 --directory d --fuzz 3 a p :: +a
  patch -o a --output b -r c --reject-file d :: +a +b +c +d | patch -s -p1 ::
  ed,red -p x --prompt x a :: a | ex -c q -S s -u r -t t --cmd q a :: a
  sort,gsort,shuf,gshuf -o a --output b x :: a b | sort -rnoout x :: out | sort --out=a x :: a
  uniq -f 1 -s 1 -w 1 --skip-fields 1 --skip-chars 1 --check-chars 1 a b :: +b | uniq a ::
  xxd -c 1 -g 1 -l 1 -o 1 -s 1 -n x -cols 1 -len 1 -seek 1 -groupsize 1 -name x -R no a b :: +b
  xxd a :: | tree -o a d :: +a | find,gfind a b -type f -delete :: a b | find -delete :: .
  find -iname x.txt -delete :: . | find -size 5 -delete :: . | find -name '*.pyc' -delete ::
  find a.pyc -delete :: a.pyc | find a-b c x-d ,a -delete :: a-b c x-d ,a
  find x-o -name '*.pyc' -delete :: | find a -name '*.pyc' -ok ls {} \\; -delete ::
  find x-d -delete :: x-d | find -P -O3 -D tree -- a -delete :: a | find -dEHLsxX a -delete :: a
  find a \\( -name x \\) -delete :: a | find a ! -name x -delete :: a | find "$X" -delete :: ?
  find a -name '*.pyc' -delete :: | find a -iname '*.pyc' -delete ::
  find a -name x.txt -delete :: a | find a -name "$X" -delete :: a
  find a -name '*.pyc' -o -delete :: a | find a -name '*.pyc' -or -delete :: a
  find a -not -name '*.pyc' -delete :: a | find a ! -name '*.pyc' -delete :: a
  find a -name '*.pyc' , -delete :: a | find a , -delete :: a | find a -delete -name '*.pyc' :: a
  find a -fprint b -fprint0 c -fprintf d x -fls e :: b c d e | find a -fprint :: ?
  find a -fprint b -delete :: b a | find a -fprint b -name '*.pyc' -delete :: b
  find x-fls a -name -fls.txt -print :: | gzip,gunzip -f a :: +a +a.gz
  bzip2,bunzip2 -f a :: +a +a.bz2 | xz,unxz -f a :: +a +a.xz | zstd -f --rm -D d a :: +a +a.zst
  zstd,lz4 -f a.zst :: +a | gzip -kf a :: +a.gz | gzip -f --keep a :: +a.gz | zstd -f a -o b :: +b
  lz4 --force --rm a :: +a +a.lz4
  gzip -f a.gz b.bz2 c.xz d.zst :: +a.gz +b.bz2 +c.xz +d.zst +a +b +c +d
  gzip -f a.lz4 b.lzma c.Z :: +a.lz4 +b.lzma +c.Z +a +b +c
  gzip -kf a.tgz b.tbz c.tbz2 d.txz e.tzst :: +a.tar +b.tar +c.tar +d.tar +e.tar
  gzip -kf a.gz.txt a.tgz.txt :: +a.gz.txt.gz +a.tgz.txt.gz | gzip -f -S .z a :: +a +a.z
  gzip -f --suffix=.y --suffix=.z a :: +a +a.z | gzip -f -S "$X" a :: +a +?
  gzip -f "$X" :: +? +? | gzip a :: | gzip -cf a :: | gzip -tf a :: | gzip -f --stdout a ::
  gzip -f --to-stdout a :: | gzip -f --test a :: | tar,bsdtar cf a d :: +a | tar rf a d :: +a
  tar uvf a d :: +a | tar Af a b :: +a | tar xf a :: | tar c a :: | tar -czf a d :: +a
  tar -c --file=a d :: +a | tar -r -f a d :: +a | tar -u -f a d :: +a | tar -A -f a b :: +a
  tar --create -f a d :: +a | tar --append -f a d :: +a | tar --update -f a d :: +a
  tar --catenate -f a b :: +a | tar --concatenate -f a b :: +a | tar --delete -f a x :: +a
  tar -cf "$X" d :: +? | tar "$X" a :: | tar -xf a :: | tar -xfarc :: | tar cf.x a :: | tar ::
  tar ./cf a :: | split -a 1 -b 1 -C 1 -l 1 -n 1 -t x --bytes 1 --lines 1 --number 1 a p :: +~p*
  split --line-bytes 1 --suffix-length 1 --additional-suffix x --separator x a p :: +~p*
  split a :: +~x* | split --filter c a 'p*?[x]{y}\\' :: +~p\\*\\?\\[x\\]\\{y\\}\\\\*
  split a "$X" :: +? | csplit -f p a 1 :: +~p* | csplit --prefix p a 1 :: +~p*
  csplit -bf%d a 1 :: +~xx* | zip -b d -P p -s 5 -t 0 -n .gz -x '*.o' -i '*.c' -r a d :: +a
  7z a -tzip a d :: +a | 7z u a d :: +a | 7z d a d :: +a | 7z rn a d e :: +a | 7z x a ::
  7z extra a :: | 7z update a :: | 7z "$X" a :: | 7z ::
  sqlite3 -cmd x -init f -separator , -nullvalue x a :: +a | ffmpeg -y -i a b :: +b
  ffmpeg -i a -c:v libx264 b :: +b | ffmpeg -i a :: | convert,magick,sox,qpdf a b c :: +c
  convert,magick,sox,qpdf a ::
  pdftotext -f 1 -l 1 -r 1 -x 1 -y 1 -W 1 -H 1 -fixed 1 -enc x -eol x -layout a b :: +b
  pdftotext -bbox -opw x -upw x -colspacing 1 a b :: +b | pdftotext a ::
  gpg,iconv,xmllint -o a --output b x :: +a +b | pandoc -o a --output b x :: a b
  dot -Tpng -oa x :: +a | openssl x -out a -keyout b -CAserial c -writerand d :: a b c d
  openssl x --out a :: a | openssl x -o a :: | pg_dump -f a --file b :: +a +b
  mysqldump -r a --result-file b :: +a +b
  gcc,g++,cc,c++,clang,clang++ -lgo -o a --output b -MF c x :: +a +b +c
  ld,as,rustc,gfortran -o a --output b -Map c x :: +a +b +c | esbuild x --outfile=a :: +a
  go build -o a -coverprofile b -cpuprofile c -memprofile d :: +a +b +c +d
  go test -blockprofile a -mutexprofile b -trace c --o d :: +d +a +b +c
  curl -o a --output b -D c --dump-header d -c e --cookie-jar f x :: a b c d e f
  curl --trace a --trace-ascii b --libcurl c --stderr d --etag-save e x :: a b c d e
  wget -O a --output-document b -o c --output-file d x :: a b c d`,
  },
  {
    title: 'a deletion of all that lies in a folder is told from one of some files',
    answer: (command) => (wipesWorkspace([command], '/project') === null ? '' : 'yes'),
    control: 'rm . ::',
    cases: `
  rm,grm,unlink,gunlink,srm,trash,trash-put,del-cli,shred,gshred,rimraf . :: yes
  mv,gmv . /tmp/x :: yes | mv -n .git /tmp/x :: yes | rsync --delete a . :: yes
  rsync --del a . :: yes | rsync -a a . :: | rsync "$X" . :: | truncate,cp,tee,sed . x ::
  find,gfind . -delete :: yes
  find -dEfHLPsxX . -depth -xdev -mount -true -a -and -noleaf -follow -daystart -delete :: yes
  find -H -O3 -D x -- . -warn -nowarn -ignore_readdir_race -mindepth 1 -maxdepth 9 -delete :: yes
  find . -print -print0 -printf x -ls -fprint x -fprint0 x -fprintf x y -fls x -delete :: yes
  find . -type f -delete :: yes | find . -type d,f -delete :: yes | find . -type d -delete ::
  find . -name x -delete :: | find . -newer f -delete :: | find . -type -delete ::
  find . "$X" -delete :: yes | find . -print ::`,
  },
  {
    title: 'a program that only reads is told from one that may write, by its words',
    answer: (command) => (reads(command, '/project') ? 'yes' : ''),
    control: 'ls a ::',
    cases: `
  ${READING.join()} a :: yes | rm,ag,ack,bat,man,fzf,zip,unzip,sqlite3,yq,patch,dd,perl a ::
  sort,shuf -o a b :: | uniq,xxd a b :: | sed,gsed p f :: yes
  sed -nErsuz --quiet --silent --regexp-extended --null-data --separate p f :: yes
  sed --unbuffered --posix --debug --expression 5q -e '$d' wow :: yes | sed 3,5p w :: yes
  sed 12,34p f :: yes | sed /ab/,/cd/d f :: yes | sed '$p' f :: yes | sed 's/a/b/' f :: yes
  sed '1s|a|b;{}|gpiI2' f :: yes | sed 's#a#b#' f :: yes | sed 's,a,b,' f :: yes
  sed 's:a:b:' f :: yes | sed 's@a@b@' f :: yes | sed 's/a\\/b/\\\\/' f :: yes
  sed /warn/p webpack.ts :: yes | sed s/w/x/ src/w.ts :: yes | sed f -e p :: yes
  sed f --expression p :: yes | sed 's/s\\//x/' f :: yes | sed -e s/a/b/ -e "$X" f ::
  sed -i p f :: | sed -l 5 p f :: | sed -f p f :: | sed -nf p f :: | sed --file=p f ::
  sed --quiet=x --in-place p f :: | sed 'w out' f :: | sed -e p -e 'e ls' f ::
  sed -e p wow :: yes | sed --expression p --expression 'e ls' f :: | sed 'e ls' f ::
  sed 1e f :: | sed px f :: | sed p5 f :: | sed 's\\x/a/b/' f :: | sed xp f ::
  sed 's/a/b/w out' f :: | sed 's/a/b/e' f :: | sed 's/a/b/ge' f :: | sed 's/[/]/g/w out' f ::
  sed 's/a/b' f :: | sed 'xs/a/b/' f :: | sed $'s/a/b/\\nw out' f :: | sed 'p;w out' f ::
  awk,gawk,mawk '{ print $1 }' f :: yes | awk '{ print $1-$2 }' f :: yes
  awk -F: -v x=1 '{ print x }' f :: yes | awk -F : 'BEGIN { system("x") }' ::
  awk '{ "date"|getline }' f :: | awk '{ getline x }' f :: | awk '{ print > "out" }' f ::
  awk '@include "x"' f :: | awk -f s f :: | awk --lint 1 f ::`,
  },
  {
    title: 'a program only passes on its input with some options, and without a file',
    answer: async (_, text) =>
      (await shellFacts(`ls | ${text}`, () => null)).commands[1]?.filters ?? '',
    control: 'cat ::',
    cases: `
  cat -A -b -e -n -s -t -u -v -E -T :: yes | cat,wc,sort,uniq -x ::
  cat,head,tail,wc,sort,uniq :: yes | cat,head,tail,wc,sort,uniq notes :: | head,tail -5 :: yes
  head,tail -n5 -c 12 -q -v -n +3 -c -4 :: yes | tail -f :: | tail -n :: | wc -clmwL -l :: yes
  sort -bdfghiMnrRuV -u :: yes | sort -o out :: | uniq -cdiu -c :: yes | tac,nl :: | cat cat ::
  wc wc :: | sort sort :: | uniq uniq :: | head head :: | tail tail :: | head -15 :: yes
  cat -An :: yes`,
  },
  {
    // with the index of the first of them
    title: 'the commands that `find` and `fd` run are those of their options',
    answer: ({ words }) => {
      const { commands = [], startsAt, unclear, mayStartAt } = commandMeaning(words);
      if (unclear !== undefined) return `unclear ${mayStartAt}`;
      const shown = commands.map((inner) => inner.map((word) => word ?? '?').join(' '));
      return startsAt === undefined ? '' : `${startsAt} ${shown.join(' & ')}`.trim();
    },
    control: 'find -exec ls ::',
    cases: `
  find,gfind . -exec rm -f {} a{} \\; -ok ls b \\; :: 3 rm -f ? ? & ls b
  find . -execdir rm x + y \\; :: 3 rm x + y | find . -okdir rm {} + -print :: 3 rm ?
  find . -exec rm {} :: 3 rm ? | find . -exec rm "$X" \\; :: 3 rm ? | find . -exec \\; :: 3
  find x-exec a :: | find "$X" -exec ls \\; :: 3 ls | find . -name -execx -print ::
  fd,fdfind x -x rm {} + y \\; :: 3 rm ? + y | fd -HIusigFalLp01qX rm \\; -x ls :: 2 rm & ls
  fd --exec rm :: 2 rm | fd --exec-batch rm :: 2 rm | fd "$X" x :: | fd a-x rm ::
  fd -HIusigFalLp01qXrm :: unclear 1 | fd -xrm :: unclear 1 | fd -x$'\\n' :: unclear 1
  fd --exec=rm :: unclear 1 | fd --exec-batch=rm :: unclear 1 | fd --exec rm \\; -xls :: unclear 1
  fd -x rm x -xls :: 2 rm x -xls | fd a-xb a--exec=b -tx -e x ::`,
  },
];

for (const { title, answer, control, cases } of TABLES)
  test(title, async () => {
    const findWrong = async (table: string) => {
      const wrong: string[] = [];
      for (const [text, expected] of casesOf(table)) {
        const given = await answer(parse(text), text);
        if (given !== expected) wrong.push(`${text}: ${given}`);
      }
      return wrong;
    };
    assert.deepEqual(await findWrong(cases), []);
    assert.equal((await findWrong(control)).length, 1, 'control');
  });
