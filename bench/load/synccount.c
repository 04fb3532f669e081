/* Counts the sync calls of a process from outside of its own code: preloaded, it stands before libc's fsync and its
 * like, counts into a file that the bench maps too, and calls on.
 *
 * RINGLEADER_SYNC_COUNTS names that file: little-endian uint64 counters, in the order of the enum below.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/types.h>
#include <unistd.h>

enum { FSYNC, FDATASYNC, SYNC_FILE_RANGE, MSYNC, COUNTERS };

static uint64_t nowhere[COUNTERS], *counters = nowhere;

__attribute__((constructor)) static void map_counters(void) {
    const char *path = getenv("RINGLEADER_SYNC_COUNTS");
    int fd = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
    if (fd < 0) return;
    void *mapped = mmap(NULL, sizeof nowhere, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (mapped != MAP_FAILED) counters = mapped;
    close(fd);
}

#define COUNT(which) __atomic_fetch_add(&counters[which], 1, __ATOMIC_RELAXED)
#define NEXT(name) \
    static __typeof__(&name) next; \
    if (!next) next = (__typeof__(&name))dlsym(RTLD_NEXT, #name)

int fsync(int fd) {
    NEXT(fsync);
    int result = next(fd);
    COUNT(FSYNC);
    return result;
}

int fdatasync(int fd) {
    NEXT(fdatasync);
    int result = next(fd);
    COUNT(FDATASYNC);
    return result;
}

int sync_file_range(int fd, off64_t offset, off64_t bytes, unsigned flags) {
    NEXT(sync_file_range);
    int result = next(fd, offset, bytes, flags);
    COUNT(SYNC_FILE_RANGE);
    return result;
}

int msync(void *start, size_t bytes, int flags) {
    NEXT(msync);
    int result = next(start, bytes, flags);
    COUNT(MSYNC);
    return result;
}
