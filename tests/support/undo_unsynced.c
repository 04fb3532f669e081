/* Preloaded into the daemon, keeps for each watched file what it was at its last sync.
 *
 * A killed process loses nothing that it wrote, because the page cache survives it; a machine that loses power keeps
 * only what was synced. So before a write or truncation of a watched file its old content goes into `<file>.undo`,
 * and a sync of the file empties that log. After SIGKILL the test plays the logs back, last entry first, and the
 * files are what a power cut may have left at worst: nothing of what was not synced.
 *
 * RINGLEADER_UNDO_PREFIX names the watched files: those whose path begins with it, but for `-shm` (shared memory that
 * SQLite rebuilds) and the logs. Each entry: offset, bytes saved, size of the file before (int64, native), saved bytes.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#define NEXT(name) \
    static __typeof__(&name) next; \
    if (!next) next = (__typeof__(&name))dlsym(RTLD_NEXT, #name)

static pthread_mutex_t one_at_a_time = PTHREAD_MUTEX_INITIALIZER;

static int ends_with(const char *text, const char *end) {
    size_t length = strlen(text), tail = strlen(end);
    return length >= tail && !strcmp(text + length - tail, end);
}

static int is_watched(const char *path) {
    const char *prefix = getenv("RINGLEADER_UNDO_PREFIX");
    return prefix && !strncmp(path, prefix, strlen(prefix)) && !ends_with(path, "-shm") && !ends_with(path, ".undo");
}

/* The path of an open watched file and its size; 0 when the file is another one. */
static int watched(int fd, char path[PATH_MAX], int64_t *size) {
    struct stat found;
    if (fstat(fd, &found) < 0 || !S_ISREG(found.st_mode)) return 0;
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, PATH_MAX - 8);
    if (length <= 0) return 0;
    path[length] = 0;
    *size = found.st_size;
    return is_watched(path);
}

static void fail(const char *what) {
    perror(what);
    abort(); /* a log with a hole would make the test lie */
}

/* Saves what lies at offset..end before it is overwritten or cut off. */
static void save(int fd, int64_t offset, int64_t end) {
    char path[PATH_MAX];
    int64_t size;
    if (!watched(fd, path, &size)) return;
    if (end > size) end = size;
    int64_t header[3] = {offset, end > offset ? end - offset : 0, size};
    char *old = malloc((size_t)header[1] + 1);
    char *from = path;
    char own[64];
    snprintf(own, sizeof own, "/proc/self/fd/%d", fd); /* fd itself may be open for writing only */
    int source = open(own, O_RDONLY | O_CLOEXEC);
    if (!old || source < 0 || pread(source, old, (size_t)header[1], offset) != header[1]) fail("cannot save");
    close(source);
    int log = open(strcat(from, ".undo"), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    struct iovec parts[2] = {{header, sizeof header}, {old, (size_t)header[1]}};
    if (log < 0 || writev(log, parts, 2) != (ssize_t)sizeof header + header[1]) fail("cannot log");
    close(log);
    free(old);
}

static void forget(int fd) {
    char path[PATH_MAX];
    int64_t size;
    if (watched(fd, path, &size)) syscall(SYS_truncate, strcat(path, ".undo"), 0L);
}

#define GUARDED(type, call) \
    pthread_mutex_lock(&one_at_a_time); \
    type result = call; \
    pthread_mutex_unlock(&one_at_a_time); \
    return result

static ssize_t saved_pwrite(int fd, const void *bytes, size_t count, off64_t offset) {
    save(fd, offset, offset + (int64_t)count);
    return syscall(SYS_pwrite64, fd, bytes, count, offset);
}

ssize_t pwrite(int fd, const void *bytes, size_t count, off_t offset) {
    GUARDED(ssize_t, saved_pwrite(fd, bytes, count, offset));
}

ssize_t pwrite64(int fd, const void *bytes, size_t count, off64_t offset) {
    GUARDED(ssize_t, saved_pwrite(fd, bytes, count, offset));
}

ssize_t write(int fd, const void *bytes, size_t count) {
    struct stat found;
    if (fstat(fd, &found) < 0 || !S_ISREG(found.st_mode)) return syscall(SYS_write, fd, bytes, count);
    pthread_mutex_lock(&one_at_a_time);
    int64_t offset = lseek(fd, 0, SEEK_CUR);
    save(fd, offset, offset + (int64_t)count);
    ssize_t result = syscall(SYS_write, fd, bytes, count);
    pthread_mutex_unlock(&one_at_a_time);
    return result;
}

static int saved_truncate(int fd, int64_t length) {
    save(fd, length, INT64_MAX);
    return (int)syscall(SYS_ftruncate, fd, length);
}

int ftruncate(int fd, off_t length) {
    GUARDED(int, saved_truncate(fd, length));
}

int ftruncate64(int fd, off64_t length) {
    GUARDED(int, saved_truncate(fd, length));
}

static int synced(int fd, int result) {
    if (!result) forget(fd);
    return result;
}

int fsync(int fd) {
    GUARDED(int, synced(fd, (int)syscall(SYS_fsync, fd)));
}

int fdatasync(int fd) {
    GUARDED(int, synced(fd, (int)syscall(SYS_fdatasync, fd)));
}

int unlink(const char *path) {
    NEXT(unlink);
    int result = next(path);
    char full[PATH_MAX];
    if (!result && is_watched(path) && snprintf(full, sizeof full, "%s.undo", path) < (int)sizeof full) next(full);
    return result;
}
