import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/**
 * Kills the real program just before or after the nth change that it makes to certain files. A library that is loaded before it
 * counts its calls of the system; the program itself knows nothing of it.
 */

const SOURCE = String.raw`
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int count;
static int due;

static void point(const char *what, const char *path) {
  const char *part = getenv("KILL_PATH");
  if (!path || !part || !strstr(path, part) || strcmp(program_invocation_short_name, "node")) return;
  int saved = errno, n = __sync_add_and_fetch(&count, 1);
  const char *log = getenv("KILL_LOG"), *at = getenv("KILL_AT");
  if (log) {
    FILE *file = fopen(log, "a");
    if (file) { fprintf(file, "%s %s\n", what, strstr(path, part)); fclose(file); }
  }
  if (at && atoi(at) == n) {
    if (getenv("KILL_AFTER")) due = 1;
    else kill(getpid(), SIGKILL);
  }
  errno = saved;
}

static int done(int result) {
  if (due) kill(getpid(), SIGKILL);
  return result;
}

#define REAL(name) static __typeof__(&name) real; if (!real) real = (__typeof__(&name)) dlsym(RTLD_NEXT, #name)
#define OPEN(name) int name(const char *path, int flags, ...) { \
  REAL(name); va_list rest; va_start(rest, flags); int mode = va_arg(rest, int); va_end(rest); \
  if (flags & (O_CREAT | O_TRUNC)) point("open", path); return done(real(path, flags, mode)); }
OPEN(open)
OPEN(open64)
int mkdir(const char *path, mode_t mode) { REAL(mkdir); point("mkdir", path); return done(real(path, mode)); }
int rmdir(const char *path) { REAL(rmdir); point("rmdir", path); return done(real(path)); }
int unlink(const char *path) { REAL(unlink); point("unlink", path); return done(real(path)); }
int link(const char *from, const char *to) { REAL(link); point("link", to); return done(real(from, to)); }
int rename(const char *from, const char *to) { REAL(rename); point("rename", to); return done(real(from, to)); }
`;

/** Compiles the library into the folder; its path. */
export const compileKiller = (folder: string): string => {
  const library = join(folder, 'killer.so');
  if (existsSync(library)) return library;
  writeFileSync(join(folder, 'killer.c'), SOURCE);
  execFileSync(
    'gcc',
    ['-shared', '-fPIC', '-O1', '-o', library, join(folder, 'killer.c'), '-ldl'],
    {
      stdio: ['ignore', 'ignore', 'pipe'],
    },
  );
  return library;
};

export type KillOrder = {
  readonly library: string;
  /** Part of the paths that count. */
  readonly path: string;
  /** The number of the change, from 1; null: nothing is killed. */
  readonly at: number | null;
  /** Whether the program is killed just after the change; default: just before it. */
  readonly after?: boolean;
  readonly log: string;
};

export const killVariables = ({
  library,
  path,
  at,
  after = false,
  log,
}: KillOrder): NodeJS.ProcessEnv => ({
  LD_PRELOAD: library,
  KILL_PATH: path,
  KILL_LOG: log,
  ...(at === null ? {} : { KILL_AT: String(at) }),
  ...(after ? { KILL_AFTER: '1' } : {}),
});

/** The changes that were begun, in order; the last one of a killed program was not made. */
export const pointsIn = (log: string): readonly string[] =>
  existsSync(log) ? readFileSync(log, 'utf8').trimEnd().split('\n') : [];
