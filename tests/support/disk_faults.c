/* Preloaded into a daemon, makes its disk fail as a file says, read anew before each call it concerns.
 *
 * RINGLEADER_FAULTS names the file. Each line: CALL PART FAULT. CALL is write (all that change content or size), sync
 * (fsync and fdatasync) or name (files and directories made, renamed, removed, or opened for writing). PART is what
 * the path contains. FAULT is the name of an error (EIO, ENOSPC, EROFS), `hang`, or a number of milliseconds that the
 * call takes longer. An empty or missing file is a disk without faults.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

static int error_of(const char *fault) {
    if (!strcmp(fault, "EIO")) return EIO;
    if (!strcmp(fault, "ENOSPC")) return ENOSPC;
    if (!strcmp(fault, "EROFS")) return EROFS;
    return 0;
}

/* Whether the call fails (errno is set), after what else the file says happened. */
static int fails(const char *call, const char *path) {
    const char *name = getenv("RINGLEADER_FAULTS");
    if (!name || !path) return 0;
    char text[4096], one[64], part[256], fault[64];
    int fd = (int)syscall(SYS_openat, AT_FDCWD, name, O_RDONLY | O_CLOEXEC, 0);
    if (fd < 0) return 0;
    ssize_t length = read(fd, text, sizeof text - 1);
    close(fd);
    if (length <= 0) return 0;
    text[length] = 0;
    char *rest = text;
    for (char *line; (line = strsep(&rest, "\n"));) {
        if (sscanf(line, "%63s %255s %63s", one, part, fault) != 3 || strcmp(one, call) || !strstr(path, part)) continue;
        int error = error_of(fault);
        if (error) {
            errno = error;
            return 1;
        }
        if (!strcmp(fault, "hang"))
            for (;;) pause();
        long ms = atol(fault);
        struct timespec wait = {ms / 1000, ms % 1000 * 1000000};
        nanosleep(&wait, NULL);
    }
    return 0;
}

static int fails_fd(const char *call, int fd) {
    char link[64], path[PATH_MAX];
    struct stat found;
    if (!getenv("RINGLEADER_FAULTS") || fstat(fd, &found) < 0) return 0;
    if (!S_ISREG(found.st_mode) && !S_ISDIR(found.st_mode)) return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length <= 0) return 0;
    path[length] = 0;
    return fails(call, path);
}

#define UNLESS(failing, number, ...) return failing ? -1 : syscall(number, __VA_ARGS__)

ssize_t write(int fd, const void *bytes, size_t size) { UNLESS(fails_fd("write", fd), SYS_write, fd, bytes, size); }
ssize_t writev(int fd, const struct iovec *parts, int count) {
    UNLESS(fails_fd("write", fd), SYS_writev, fd, parts, count);
}
ssize_t pwrite(int fd, const void *bytes, size_t size, off_t at) {
    UNLESS(fails_fd("write", fd), SYS_pwrite64, fd, bytes, size, at);
}
ssize_t pwrite64(int fd, const void *bytes, size_t size, off64_t at) {
    UNLESS(fails_fd("write", fd), SYS_pwrite64, fd, bytes, size, at);
}
ssize_t pwritev(int fd, const struct iovec *parts, int count, off_t at) {
    UNLESS(fails_fd("write", fd), SYS_pwritev, fd, parts, count, at, 0);
}
ssize_t pwritev64(int fd, const struct iovec *parts, int count, off64_t at) {
    UNLESS(fails_fd("write", fd), SYS_pwritev, fd, parts, count, at, 0);
}
ssize_t pwritev2(int fd, const struct iovec *parts, int count, off_t at, int flags) {
    (void)flags;
    UNLESS(fails_fd("write", fd), SYS_pwritev, fd, parts, count, at, 0);
}
ssize_t pwritev64v2(int fd, const struct iovec *parts, int count, off64_t at, int flags) {
    (void)flags;
    UNLESS(fails_fd("write", fd), SYS_pwritev, fd, parts, count, at, 0);
}
int ftruncate(int fd, off_t size) { UNLESS(fails_fd("write", fd), SYS_ftruncate, fd, size); }
int ftruncate64(int fd, off64_t size) { UNLESS(fails_fd("write", fd), SYS_ftruncate, fd, size); }

int fsync(int fd) { UNLESS(fails_fd("sync", fd), SYS_fsync, fd); }
int fdatasync(int fd) { UNLESS(fails_fd("sync", fd), SYS_fdatasync, fd); }

static int opened(int directory, const char *name, int flags, unsigned mode) {
    int changes = (flags & (O_CREAT | O_TRUNC)) || (flags & O_ACCMODE) != O_RDONLY;
    if (changes && fails("name", name)) return -1;
    return (int)syscall(SYS_openat, directory, name, flags, mode);
}

#define OPEN(directory, name, flags) \
    unsigned mode = 0; \
    if ((flags) & (O_CREAT | O_TMPFILE)) { \
        va_list rest; \
        va_start(rest, flags); \
        mode = va_arg(rest, unsigned); \
        va_end(rest); \
    } \
    return opened(directory, name, flags, mode)

int open(const char *name, int flags, ...) { OPEN(AT_FDCWD, name, flags); }
int open64(const char *name, int flags, ...) { OPEN(AT_FDCWD, name, flags); }
int openat(int directory, const char *name, int flags, ...) { OPEN(directory, name, flags); }
int openat64(int directory, const char *name, int flags, ...) { OPEN(directory, name, flags); }

int mkdir(const char *name, mode_t mode) { UNLESS(fails("name", name), SYS_mkdirat, AT_FDCWD, name, mode); }
int unlink(const char *name) { UNLESS(fails("name", name), SYS_unlinkat, AT_FDCWD, name, 0); }
int rename(const char *from, const char *to) {
    UNLESS(fails("name", to), SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0);
}
