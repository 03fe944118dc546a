/* A library to be loaded before all others (LD_PRELOAD): it kills the process, and its group, at
 * the FILE_CALLS_KILL-th call that changes a file or makes changes last. With FILE_CALLS_TORN a
 * write that is due for it has half of its octets written before. Without FILE_CALLS_KILL the calls
 * are counted into the file FILE_CALLS_COUNT. Children are not watched. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

static atomic_long calls;
static long last;
static bool torn;
static const char *count_file;

__attribute__((constructor)) static void begin(void)
{
    const char *at = getenv("FILE_CALLS_KILL");
    last = at ? atol(at) : 0;
    torn = getenv("FILE_CALLS_TORN") != NULL;
    count_file = getenv("FILE_CALLS_COUNT");
    unsetenv("LD_PRELOAD");
}

__attribute__((destructor)) static void end(void)
{
    char text[32];
    if (!count_file)
        return;
    int length = snprintf(text, sizeof text, "%ld\n", atomic_load(&calls));
    int file = (int)syscall(SYS_openat, AT_FDCWD, count_file, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    syscall(SYS_write, file, text, length);
    syscall(SYS_close, file);
}

static bool is_due(void)
{
    return atomic_fetch_add(&calls, 1) + 1 == last;
}

static void die(void)
{
    kill(0, SIGKILL);
    pause();
}

static bool is_file(int file)
{
    struct stat about;
    return fstat(file, &about) == 0 && S_ISREG(about.st_mode);
}

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

#define CALL(result, name, parameters, arguments)                                                  \
    result name parameters                                                                         \
    {                                                                                              \
        static __typeof__(&name) real;                                                             \
        if (!real)                                                                                 \
            real = REAL(name);                                                                     \
        if (is_due())                                                                              \
            die();                                                                                 \
        return real arguments;                                                                     \
    }

CALL(int, fsync, (int file), (file))
CALL(int, fdatasync, (int file), (file))
CALL(int, ftruncate, (int file, off_t length), (file, length))
CALL(int, ftruncate64, (int file, off64_t length), (file, length))
CALL(int, rename, (const char *from, const char *to), (from, to))
CALL(int, renameat, (int a, const char *from, int b, const char *to), (a, from, b, to))
CALL(int, unlink, (const char *path), (path))
CALL(int, unlinkat, (int folder, const char *path, int flags), (folder, path, flags))
CALL(int, link, (const char *from, const char *to), (from, to))
CALL(int, mkdir, (const char *path, mode_t mode), (path, mode))
CALL(int, rmdir, (const char *path), (path))
CALL(ssize_t, sendfile, (int to, int from, off_t *at, size_t count), (to, from, at, count))
CALL(ssize_t, copy_file_range,
     (int from, off64_t *a, int to, off64_t *b, size_t count, unsigned flags),
     (from, a, to, b, count, flags))

#define WRITE(name, parameters, arguments, half)                                                   \
    ssize_t name parameters                                                                        \
    {                                                                                              \
        static __typeof__(&name) real;                                                             \
        if (!real)                                                                                 \
            real = REAL(name);                                                                     \
        if (is_file(file) && is_due()) {                                                           \
            if (torn && count > 1)                                                                 \
                (void)!real half;                                                                  \
            die();                                                                                 \
        }                                                                                          \
        return real arguments;                                                                     \
    }

WRITE(write, (int file, const void *from, size_t count), (file, from, count),
      (file, from, count / 2))
WRITE(pwrite, (int file, const void *from, size_t count, off_t at), (file, from, count, at),
      (file, from, count / 2, at))
WRITE(pwrite64, (int file, const void *from, size_t count, off64_t at), (file, from, count, at),
      (file, from, count / 2, at))
