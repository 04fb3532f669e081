/* Preloaded into a daemon, keeps what is needed to undo all that it did to a directory and did not sync.
 *
 * A killed process loses nothing that it wrote, because the page cache survives it; a machine that loses power keeps
 * only what was synced: of a file its content at its last fsync, of a directory the names in it at its own last fsync.
 * So every change below the watched directory goes into a journal before it is made, with what it replaces; removed
 * files live on under a number. After SIGKILL tests/support/powercut.py undoes what no sync covers.
 *
 * RINGLEADER_UNDO_ROOT (the directory, an absolute path without links) and RINGLEADER_UNDO_JOURNAL (a directory for
 * the journal, beside it) start it; so does undo_watch(root, journal, last), which also kills the process before the
 * change or sync with the number `last` (from 1; 0: never), so that each moment can be the last one.
 *
 * An entry: kind (one letter in 8 bytes), inode, three numbers, lengths of two names and of saved bytes (int64,
 * native), then those. W: inode, offset, size before, saved bytes. T: the same, the file is cut off. S: inode (0: all
 * that there is), name. C: name is made. U: name is removed, kept under the number. D: directory is removed.
 * R: name gets the second name; what had that is kept under the number, or -1.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

static pthread_mutex_t one_at_a_time = PTHREAD_MUTEX_INITIALIZER;
static char root[PATH_MAX], journal_dir[PATH_MAX];
static size_t root_length;
static int journal = -1;
static int64_t kept, done, last;
static int pretends;

static void fail(const char *what) {
    perror(what);
    abort(); /* a journal with a hole would make the test lie */
}

void undo_watch(const char *directory, const char *into, int64_t until) {
    char path[PATH_MAX + 16];
    snprintf(root, sizeof root, "%s", directory);
    snprintf(journal_dir, sizeof journal_dir, "%s", into);
    snprintf(path, sizeof path, "%s/journal", into);
    last = until;
    journal = (int)syscall(SYS_openat, AT_FDCWD, path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (journal < 0) fail(path);
    root_length = strlen(root);
}

int64_t undo_count(void) { return done; }

/* From here on syncs are none: for a process that only looks at what is left. */
void undo_pretend(void) { pretends = 1; }

__attribute__((constructor)) static void from_environment(void) {
    const char *directory = getenv("RINGLEADER_UNDO_ROOT"), *into = getenv("RINGLEADER_UNDO_JOURNAL");
    if (directory && into) undo_watch(directory, into, 0);
}

/* The absolute path, if it is below the watched directory. */
static int is_watched(int directory, const char *name, char path[PATH_MAX]) {
    if (!root_length || !name) return 0;
    char link[64], base[PATH_MAX] = "";
    if (name[0] != '/') {
        if (directory == AT_FDCWD) {
            if (!getcwd(base, sizeof base)) return 0;
        } else {
            snprintf(link, sizeof link, "/proc/self/fd/%d", directory);
            ssize_t length = readlink(link, base, sizeof base - 1);
            if (length <= 0) return 0;
            base[length] = 0;
        }
    }
    size_t base_length = strlen(base), length = strlen(name);
    if (base_length + length + 2 > PATH_MAX) return 0;
    memcpy(path, base, base_length);
    if (base_length) path[base_length++] = '/';
    memcpy(path + base_length, name, length + 1);
    return !strncmp(path, root, root_length) && path[root_length] == '/';
}

/* The same for an open file or directory, the watched one among them. */
static int is_watched_fd(int fd, char path[PATH_MAX], struct stat *found) {
    if (!root_length || fstat(fd, found) < 0 || !(S_ISREG(found->st_mode) || S_ISDIR(found->st_mode))) return 0;
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, PATH_MAX - 1);
    if (length <= 0) return 0;
    path[length] = 0;
    return !strncmp(path, root, root_length) && (path[root_length] == '/' || !path[root_length]);
}

static void note(char kind, int64_t inode, int64_t a, int64_t b, const char *name, const char *second,
                 const void *saved, int64_t size) {
    int64_t head[7] = {kind, inode, a, b, name ? (int64_t)strlen(name) : 0, second ? (int64_t)strlen(second) : 0, size};
    struct iovec parts[4] = {{head, sizeof head},
                             {(void *)name, (size_t)head[4]},
                             {(void *)second, (size_t)head[5]},
                             {(void *)saved, (size_t)size}};
    ssize_t whole = (ssize_t)(sizeof head + (size_t)head[4] + (size_t)head[5] + (size_t)size);
    if (syscall(SYS_writev, journal, parts, 4) != whole) fail("cannot log");
}

/* Before each change and each sync: it may be the moment of the cut. */
static void count(void) {
    if (++done == last) kill(getpid(), SIGKILL), pause();
}

/* Saves what lies at offset..end before it is overwritten or cut off. */
static void save(char kind, int fd, int64_t offset, int64_t end) {
    char path[PATH_MAX];
    struct stat found;
    if (!is_watched_fd(fd, path, &found) || !S_ISREG(found.st_mode)) return;
    count();
    int64_t size = found.st_size;
    if (end > size) end = size;
    int64_t length = end > offset ? end - offset : 0;
    char *old = malloc((size_t)length + 1);
    char own[64];
    snprintf(own, sizeof own, "/proc/self/fd/%d", fd); /* fd itself may be open for writing only */
    int source = (int)syscall(SYS_openat, AT_FDCWD, own, O_RDONLY | O_CLOEXEC, 0);
    if (!old || source < 0 || pread(source, old, (size_t)length, offset) != length) fail("cannot save");
    close(source);
    note(kind, (int64_t)found.st_ino, offset, size, NULL, NULL, old, length);
    free(old);
}

/* Keeps what is about to lose its name; the number, or -1 if there is nothing. */
static int64_t keep(const char *path) {
    char to[PATH_MAX + 32];
    struct stat found;
    if (lstat(path, &found) < 0 || S_ISDIR(found.st_mode)) return -1;
    do snprintf(to, sizeof to, "%s/kept-%lld", journal_dir, (long long)kept++);
    while (syscall(SYS_linkat, AT_FDCWD, path, AT_FDCWD, to, 0) < 0 && errno == EEXIST);
    if (access(to, F_OK) < 0) fail(to);
    return kept - 1;
}

#define GUARDED(type, call) \
    pthread_mutex_lock(&one_at_a_time); \
    type result = call; \
    int error = errno; \
    pthread_mutex_unlock(&one_at_a_time); \
    errno = error; \
    return result

/* ---- content ---- */

static ssize_t saved_pwrite(int fd, const void *bytes, size_t size, off64_t offset) {
    save('W', fd, offset, offset + (int64_t)size);
    return syscall(SYS_pwrite64, fd, bytes, size, offset);
}

ssize_t pwrite(int fd, const void *bytes, size_t size, off_t offset) {
    GUARDED(ssize_t, saved_pwrite(fd, bytes, size, offset));
}

ssize_t pwrite64(int fd, const void *bytes, size_t size, off64_t offset) {
    GUARDED(ssize_t, saved_pwrite(fd, bytes, size, offset));
}

static int64_t size_of(const struct iovec *parts, int count) {
    int64_t size = 0;
    for (int i = 0; i < count; i++) size += (int64_t)parts[i].iov_len;
    return size;
}

static ssize_t saved_pwritev(int fd, const struct iovec *parts, int count, off64_t offset) {
    save('W', fd, offset, offset + size_of(parts, count));
    return syscall(SYS_pwritev, fd, parts, count, offset, 0);
}

ssize_t pwritev(int fd, const struct iovec *parts, int count, off_t offset) {
    GUARDED(ssize_t, saved_pwritev(fd, parts, count, offset));
}

ssize_t pwritev64(int fd, const struct iovec *parts, int count, off64_t offset) {
    GUARDED(ssize_t, saved_pwritev(fd, parts, count, offset));
}

ssize_t pwritev2(int fd, const struct iovec *parts, int count, off_t offset, int flags) {
    (void)flags;
    GUARDED(ssize_t, saved_pwritev(fd, parts, count, offset));
}

ssize_t pwritev64v2(int fd, const struct iovec *parts, int count, off64_t offset, int flags) {
    (void)flags;
    GUARDED(ssize_t, saved_pwritev(fd, parts, count, offset));
}

static int is_file(int fd) {
    struct stat found;
    return root_length && !fstat(fd, &found) && S_ISREG(found.st_mode);
}

static int64_t position(int fd) {
    struct stat found;
    if (fcntl(fd, F_GETFL) & O_APPEND && !fstat(fd, &found)) return found.st_size;
    return lseek(fd, 0, SEEK_CUR);
}

static ssize_t saved_write(int fd, const void *bytes, size_t size) {
    int64_t at = position(fd);
    save('W', fd, at, at + (int64_t)size);
    return syscall(SYS_write, fd, bytes, size);
}

ssize_t write(int fd, const void *bytes, size_t size) {
    if (!is_file(fd)) return syscall(SYS_write, fd, bytes, size); /* a socket may wait */
    GUARDED(ssize_t, saved_write(fd, bytes, size));
}

static ssize_t saved_writev(int fd, const struct iovec *parts, int count) {
    int64_t at = position(fd);
    save('W', fd, at, at + size_of(parts, count));
    return syscall(SYS_writev, fd, parts, count);
}

ssize_t writev(int fd, const struct iovec *parts, int count) {
    if (!is_file(fd)) return syscall(SYS_writev, fd, parts, count);
    GUARDED(ssize_t, saved_writev(fd, parts, count));
}

static int saved_ftruncate(int fd, int64_t length) {
    save('T', fd, length, INT64_MAX);
    return (int)syscall(SYS_ftruncate, fd, length);
}

int ftruncate(int fd, off_t length) { GUARDED(int, saved_ftruncate(fd, length)); }

int ftruncate64(int fd, off64_t length) { GUARDED(int, saved_ftruncate(fd, length)); }

static int saved_truncate(const char *name, int64_t length) {
    char path[PATH_MAX];
    if (!is_watched(AT_FDCWD, name, path)) return (int)syscall(SYS_truncate, name, length);
    int fd = (int)syscall(SYS_openat, AT_FDCWD, name, O_WRONLY | O_CLOEXEC, 0);
    if (fd < 0) return -1;
    int result = saved_ftruncate(fd, length);
    close(fd);
    return result;
}

int truncate(const char *name, off_t length) { GUARDED(int, saved_truncate(name, length)); }

int truncate64(const char *name, off64_t length) { GUARDED(int, saved_truncate(name, length)); }

/* ---- syncs ---- */

static int noted_sync(int fd, long call) {
    char path[PATH_MAX];
    struct stat found;
    if (pretends) return 0;
    if (!is_watched_fd(fd, path, &found)) return (int)syscall(call, fd);
    count();
    note('S', (int64_t)found.st_ino, S_ISDIR(found.st_mode) != 0, 0, S_ISDIR(found.st_mode) ? path : NULL, NULL, NULL, 0);
    return 0; /* nothing need be synced to outlive a killed process */
}

int fsync(int fd) { GUARDED(int, noted_sync(fd, SYS_fsync)); }

int fdatasync(int fd) { GUARDED(int, noted_sync(fd, SYS_fdatasync)); }

static int noted_sync_all(void) {
    if (root_length) count();
    syscall(SYS_sync);
    if (root_length) note('S', 0, 0, 0, NULL, NULL, NULL, 0);
    return 0;
}

static int sync_all(void) { GUARDED(int, noted_sync_all()); }

void sync(void) { sync_all(); }

/* ---- names ---- */

static int noted_open(int directory, const char *name, int flags, unsigned mode) {
    char path[PATH_MAX];
    if (!(flags & (O_CREAT | O_TRUNC)) || (flags & O_TMPFILE) == O_TMPFILE || !is_watched(directory, name, path))
        return (int)syscall(SYS_openat, directory, name, flags, mode);
    int is_new = flags & O_CREAT && access(path, F_OK) < 0;
    if (is_new) {
        count();
        note('C', 0, 0, 0, path, NULL, NULL, 0);
    }
    int fd = (int)syscall(SYS_openat, directory, name, flags & ~O_TRUNC, mode);
    if (fd >= 0 && !is_new && flags & O_TRUNC) saved_ftruncate(fd, 0);
    return fd;
}

#define OPEN(directory, name, flags) \
    unsigned mode = 0; \
    if ((flags) & (O_CREAT | O_TMPFILE)) { \
        va_list rest; \
        va_start(rest, flags); \
        mode = va_arg(rest, unsigned); \
        va_end(rest); \
    } \
    if (!root_length) return (int)syscall(SYS_openat, directory, name, flags, mode); \
    GUARDED(int, noted_open(directory, name, flags, mode))

int open(const char *name, int flags, ...) { OPEN(AT_FDCWD, name, flags); }

int open64(const char *name, int flags, ...) { OPEN(AT_FDCWD, name, flags); }

int openat(int directory, const char *name, int flags, ...) { OPEN(directory, name, flags); }

int openat64(int directory, const char *name, int flags, ...) { OPEN(directory, name, flags); }

static int noted_mkdir(int directory, const char *name, mode_t mode) {
    char path[PATH_MAX];
    if (is_watched(directory, name, path) && access(path, F_OK) < 0) {
        count();
        note('C', 0, 0, 0, path, NULL, NULL, 0);
    }
    return (int)syscall(SYS_mkdirat, directory, name, mode);
}

int mkdir(const char *name, mode_t mode) { GUARDED(int, noted_mkdir(AT_FDCWD, name, mode)); }

int mkdirat(int directory, const char *name, mode_t mode) { GUARDED(int, noted_mkdir(directory, name, mode)); }

static int noted_unlink(int directory, const char *name, int flags) {
    char path[PATH_MAX];
    if (is_watched(directory, name, path) && access(path, F_OK) == 0) {
        count();
        int64_t number = flags & AT_REMOVEDIR ? -1 : keep(path);
        note(flags & AT_REMOVEDIR ? 'D' : 'U', 0, number, 0, path, NULL, NULL, 0);
    }
    return (int)syscall(SYS_unlinkat, directory, name, flags);
}

int unlink(const char *name) { GUARDED(int, noted_unlink(AT_FDCWD, name, 0)); }

int rmdir(const char *name) { GUARDED(int, noted_unlink(AT_FDCWD, name, AT_REMOVEDIR)); }

int unlinkat(int directory, const char *name, int flags) { GUARDED(int, noted_unlink(directory, name, flags)); }

static int noted_rename(int from_directory, const char *from, int to_directory, const char *to) {
    char old[PATH_MAX], new[PATH_MAX];
    if (is_watched(from_directory, from, old) && is_watched(to_directory, to, new) && access(old, F_OK) == 0) {
        count();
        note('R', 0, keep(new), 0, old, new, NULL, 0);
    }
    return (int)syscall(SYS_renameat2, from_directory, from, to_directory, to, 0);
}

int rename(const char *from, const char *to) { GUARDED(int, noted_rename(AT_FDCWD, from, AT_FDCWD, to)); }

int renameat(int from_directory, const char *from, int to_directory, const char *to) {
    GUARDED(int, noted_rename(from_directory, from, to_directory, to));
}

static int noted_link(int from_directory, const char *from, int to_directory, const char *to, int flags) {
    char path[PATH_MAX];
    if (is_watched(to_directory, to, path) && access(path, F_OK) < 0) {
        count();
        note('C', 0, 0, 0, path, NULL, NULL, 0);
    }
    return (int)syscall(SYS_linkat, from_directory, from, to_directory, to, flags);
}

int link(const char *from, const char *to) { GUARDED(int, noted_link(AT_FDCWD, from, AT_FDCWD, to, 0)); }

int linkat(int from_directory, const char *from, int to_directory, const char *to, int flags) {
    GUARDED(int, noted_link(from_directory, from, to_directory, to, flags));
}
