/*
 * Counts what a program does to files below a folder, and ends it at one of these steps. Loaded with LD_PRELOAD, so the
 * program itself has no part in it. Its children are not counted.
 *
 * KILL_FOLDER  only steps below this folder count, and starts of processes
 * KILL_LOG     gets a line for each step before it is done: number, name, place
 * KILL_AT      the number of the step at which it happens; 0 for never
 * KILL_WHEN    before, half (writes only half of the bytes) or after that step
 * KILL_SIGNAL  the signal that the program gets (SIGKILL if not set)
 * KILL_ERROR   an error number: from that step on, steps that need space or a descriptor fail with it, without a signal
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

static char folder[4096];
static size_t folder_length;
static int log_file = -1;
static long kill_at;
static char kill_when[16] = "before";
static int failure;
static int kill_signal = SIGKILL;
static atomic_long steps;

__attribute__((constructor)) static void begin(void) {
  const char *value = getenv("KILL_FOLDER");
  if (value == NULL) return;
  snprintf(folder, sizeof folder, "%s/", value);
  folder_length = strlen(folder);
  if ((value = getenv("KILL_LOG")) != NULL)
    log_file = syscall(SYS_openat, AT_FDCWD, value, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  if ((value = getenv("KILL_AT")) != NULL) kill_at = atol(value);
  if ((value = getenv("KILL_WHEN")) != NULL) snprintf(kill_when, sizeof kill_when, "%s", value);
  if ((value = getenv("KILL_ERROR")) != NULL) failure = atoi(value);
  if ((value = getenv("KILL_SIGNAL")) != NULL) kill_signal = atoi(value);
  const char *names[] = {"LD_PRELOAD", "KILL_SIGNAL", "KILL_FOLDER", "KILL_LOG", "KILL_AT", "KILL_WHEN", "KILL_ERROR"};
  for (size_t at = 0; at < sizeof names / sizeof *names; at++) unsetenv(names[at]);
}

static void end(void) { syscall(SYS_kill, syscall(SYS_getpid), kill_signal); }

/* The place that a path through /proc/self/fd means. */
static const char *resolve(const char *path, char *room, size_t size) {
  const char *prefix = "/proc/self/fd/";
  if (strncmp(path, prefix, strlen(prefix)) != 0) return path;
  char link[64];
  const char *rest = strchr(path + strlen(prefix), '/');
  size_t length = rest == NULL ? strlen(path) : (size_t)(rest - path);
  if (length >= sizeof link) return path;
  memcpy(link, path, length);
  link[length] = 0;
  ssize_t found = readlink(link, room, size - 1);
  if (found < 0) return path;
  snprintf(room + found, size - found, "%s", rest == NULL ? "" : rest);
  return room;
}

enum { ELSEWHERE, GO, HALF, LAST, FAIL };

/* Counts a step; whether it is to be done as usual, half, as the last one, or fails. */
static int count(const char *name, const char *place, int can_fail) {
  if (folder_length == 0 || place == NULL) return ELSEWHERE;
  char room[4096];
  const char *real = resolve(place, room, sizeof room);
  if (*real == '/' && strncmp(real, folder, folder_length) != 0) return ELSEWHERE;
  if (*real != '/' && *real != '-') return ELSEWHERE;
  int saved = errno;
  long number = atomic_fetch_add(&steps, 1) + 1;
  char line[4300];
  int length = snprintf(line, sizeof line, "%ld %s %s\n", number, name, real);
  if (log_file >= 0) (void)!syscall(SYS_write, log_file, line, length);
  errno = saved;
  if (kill_at == 0 || number < kill_at) return GO;
  if (failure != 0) return can_fail ? FAIL : GO;
  if (number != kill_at) return GO;
  if (strcmp(kill_when, "before") == 0) return end(), GO;
  return strcmp(kill_when, "half") == 0 ? HALF : LAST;
}

static int count_file(const char *name, int file, int can_fail) {
  if (folder_length == 0 || file < 3) return ELSEWHERE;
  char link[64];
  snprintf(link, sizeof link, "/proc/self/fd/%d", file);
  return count(name, link, can_fail);
}

#define REAL(name) \
  static __typeof__(name) *real; \
  if (real == NULL) real = (__typeof__(name) *)dlsym(RTLD_NEXT, #name)

#define STEP(counted, call) \
  int step = counted; \
  if (step == FAIL) return errno = failure, -1; \
  __typeof__(call) result = call; \
  if (step == LAST || step == HALF) end(); \
  return result

#define OPENS(name) \
  int name(const char *path, int flags, ...) { \
    REAL(name); \
    mode_t mode = 0; \
    if (flags & (O_CREAT | O_TMPFILE)) { \
      va_list rest; \
      va_start(rest, flags); \
      mode = va_arg(rest, mode_t); \
      va_end(rest); \
    } \
    if (!(flags & O_CREAT)) return real(path, flags, mode); \
    STEP(count("create", path, 1), real(path, flags, mode)); \
  }
OPENS(open)
OPENS(open64)

#define WRITES(name, list, pass, half) \
  ssize_t name list { \
    REAL(name); \
    int step = count_file("write", file, 1); \
    if (step == FAIL) return errno = failure, -1; \
    ssize_t result = step == HALF ? half : real pass; \
    if (step == LAST || step == HALF) end(); \
    return result; \
  }
WRITES(write, (int file, const void *bytes, size_t size), (file, bytes, size), real(file, bytes, size / 2))
WRITES(pwrite, (int file, const void *bytes, size_t size, off_t at), (file, bytes, size, at), real(file, bytes, size / 2, at))
WRITES(pwrite64, (int file, const void *bytes, size_t size, off64_t at), (file, bytes, size, at), real(file, bytes, size / 2, at))
WRITES(writev, (int file, const struct iovec *parts, int size), (file, parts, size), syscall(SYS_write, file, parts->iov_base, parts->iov_len / 2))
WRITES(pwritev, (int file, const struct iovec *parts, int size, off_t at), (file, parts, size, at), syscall(SYS_pwrite64, file, parts->iov_base, parts->iov_len / 2, at))
WRITES(pwritev64, (int file, const struct iovec *parts, int size, off64_t at), (file, parts, size, at), syscall(SYS_pwrite64, file, parts->iov_base, parts->iov_len / 2, at))

int fsync(int file) { REAL(fsync); STEP(count_file("sync", file, 1), real(file)); }
int fdatasync(int file) { REAL(fdatasync); STEP(count_file("sync", file, 1), real(file)); }
int ftruncate(int file, off_t size) { REAL(ftruncate); STEP(count_file("truncate", file, 0), real(file, size)); }
int ftruncate64(int file, off64_t size) { REAL(ftruncate64); STEP(count_file("truncate", file, 0), real(file, size)); }
int rename(const char *from, const char *to) { REAL(rename); STEP(count("rename", to, 1), real(from, to)); }
int link(const char *from, const char *to) { REAL(link); STEP(count("link", to, 1), real(from, to)); }
int symlink(const char *from, const char *to) { REAL(symlink); STEP(count("symlink", to, 1), real(from, to)); }
int unlink(const char *path) { REAL(unlink); STEP(count("remove", path, 0), real(path)); }
int rmdir(const char *path) { REAL(rmdir); STEP(count("remove", path, 0), real(path)); }
int mkdir(const char *path, mode_t mode) { REAL(mkdir); STEP(count("folder", path, 1), real(path, mode)); }
pid_t fork(void) {
  REAL(fork);
  int step = count("start", "-", 1);
  if (step == FAIL) return errno = EAGAIN, -1;
  pid_t child = real();
  if (child != 0 && (step == LAST || step == HALF)) end();
  return child;
}
