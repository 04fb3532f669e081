/* What the load programs share: time, big-endian numbers, a latency histogram, sockets, the frames file, messages. */
#ifndef RINGLEADER_BENCH_COMMON_H
#define RINGLEADER_BENCH_COMMON_H

#define _GNU_SOURCE
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* Kafka's limit on a request; a longer answer is an error of the server under test. */
#define MAX_FRAME_BYTES (100 * 1024 * 1024)
/* Size field and correlation id: every answer has them. */
#define MIN_ANSWER_BYTES 8
/* Where a request keeps its correlation id, counted from the size field. */
#define CORRELATION_ID_AT 8

static inline void die(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fputc('\n', stderr);
    exit(1);
}

static inline uint64_t now_ns(void) {
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    return (uint64_t)at.tv_sec * 1000000000ull + (uint64_t)at.tv_nsec;
}

static inline uint32_t get_u32(const uint8_t *at) {
    uint32_t value;
    memcpy(&value, at, 4);
    return ntohl(value);
}

static inline void put_u32(uint8_t *at, uint32_t value) {
    value = htonl(value);
    memcpy(at, &value, 4);
}

static inline void put_u64(uint8_t *at, uint64_t value) {
    put_u32(at, (uint32_t)(value >> 32));
    put_u32(at + 4, (uint32_t)value);
}

static inline int16_t get_i16(const uint8_t *at) {
    return (int16_t)(((uint16_t)at[0] << 8) | at[1]);
}

static inline void *take(size_t bytes) {
    void *memory = calloc(1, bytes);
    if (!memory) die("out of memory");
    return memory;
}

/* Latencies in ns, 64 buckets for each power of two: at most 1.6 % off. */
#define SUB_BITS 6
#define SUB (1 << SUB_BITS)
typedef struct {
    uint64_t counts[64 * SUB];
    uint64_t total, sum_ns, max_ns;
} histogram;

static inline void histogram_add(histogram *h, uint64_t ns) {
    int top = ns < SUB ? SUB_BITS : 63 - __builtin_clzll(ns);
    int shift = top - SUB_BITS;
    h->counts[((size_t)shift << SUB_BITS) + (ns >> shift)]++;
    h->total++;
    h->sum_ns += ns;
    if (ns > h->max_ns) h->max_ns = ns;
}

static inline double histogram_us(const histogram *h, double quantile) {
    uint64_t wanted = (uint64_t)(quantile * (double)h->total + 0.5), seen = 0;
    if (wanted < 1) wanted = 1;
    for (size_t i = 0; i < 64 * SUB; i++) {
        seen += h->counts[i];
        if (!h->counts[i] || seen < wanted) continue;
        /* Index = shift * 64 + mantissa, and a mantissa above shift 0 is 64..127. */
        size_t shift = i < 2 * SUB ? 0 : (i >> SUB_BITS) - 1;
        return (double)((i - (shift << SUB_BITS)) << shift) / 1000.0;
    }
    return 0;
}

/* User and system time of a process in clock ticks, threads included; -1 when it is gone. */
static inline long process_ticks(int pid) {
    char path[64], text[1024];
    snprintf(path, sizeof path, "/proc/%d/stat", pid);
    FILE *file = fopen(path, "r");
    if (!file) return -1;
    size_t got = fread(text, 1, sizeof text - 1, file);
    fclose(file);
    text[got] = 0;
    const char *at = strrchr(text, ')'); /* the name before it may hold anything */
    long user = 0, kernel = 0;
    if (!at || sscanf(at + 2, "%*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %ld %ld", &user, &kernel) != 2) return -1;
    return user + kernel;
}

static inline double own_cpu_seconds(void) {
    struct rusage used;
    getrusage(RUSAGE_SELF, &used);
    return (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
           (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec) / 1e6;
}

static inline int connect_to(const char *host, int port) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    if (inet_pton(AF_INET, host, &address.sin_addr) != 1) die("not an IPv4 address: %s", host);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof address) < 0)
        die("cannot connect to %s:%d: %s", host, port, strerror(errno));
    int on = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
    return fd;
}

/* A request to send again and again. counter_at: where a big-endian int64 lies that grows with each sending, or 0. */
typedef struct {
    uint8_t *bytes;
    uint32_t length, counter_at;
    uint64_t counter;
} frame;

/* The frames file, all little-endian uint32: for each connection the number of its frames, then for each frame its
 * length, counter_at, and bytes (size field included). */
typedef struct {
    frame *frames;
    uint32_t count;
} frame_list;

static inline uint32_t read_u32(FILE *file, const char *path) {
    uint8_t raw[4];
    if (fread(raw, 1, 4, file) != 4) die("%s ends early", path);
    return (uint32_t)raw[0] | (uint32_t)raw[1] << 8 | (uint32_t)raw[2] << 16 | (uint32_t)raw[3] << 24;
}

static inline frame_list *read_frames(const char *path, uint32_t *connections) {
    FILE *file = fopen(path, "rb");
    if (!file) die("cannot read %s: %s", path, strerror(errno));
    *connections = read_u32(file, path);
    frame_list *lists = take(sizeof *lists * (*connections ? *connections : 1));
    for (uint32_t c = 0; c < *connections; c++) {
        lists[c].count = read_u32(file, path);
        if (!lists[c].count) die("%s: connection %u has no frame", path, c);
        lists[c].frames = take(sizeof(frame) * lists[c].count);
        for (uint32_t i = 0; i < lists[c].count; i++) {
            frame *one = &lists[c].frames[i];
            one->length = read_u32(file, path);
            one->counter_at = read_u32(file, path);
            if (one->length < 12 || one->length > MAX_FRAME_BYTES || one->counter_at + 8 > one->length)
                die("%s: bad frame", path);
            one->bytes = take(one->length);
            if (fread(one->bytes, 1, one->length, file) != one->length) die("%s ends early", path);
        }
    }
    fclose(file);
    return lists;
}

/* Answers with an error code, by code. */
typedef struct {
    uint64_t by_code[256], others;
} error_counts;

static inline void count_error(error_counts *errors, int16_t code) {
    if (code >= -1 && code < 255) errors->by_code[code + 1]++;
    else errors->others++;
}

static inline void print_errors(const error_counts *errors) {
    printf("\"errors\": {");
    const char *comma = "";
    for (int i = 0; i < 256; i++) {
        if (!errors->by_code[i]) continue;
        printf("%s\"%d\": %llu", comma, i - 1, (unsigned long long)errors->by_code[i]);
        comma = ", ";
    }
    if (errors->others) printf("%s\"other\": %llu", comma, (unsigned long long)errors->others);
    printf("}");
}

/* A message that is made, or read. */
typedef struct {
    uint8_t *bytes;
    size_t length, room;
} buffer;

static inline uint8_t *reserve(buffer *b, size_t more) {
    if (b->length + more > b->room) {
        b->room = 2 * b->room + more;
        b->bytes = realloc(b->bytes, b->room);
        if (!b->bytes) die("out of memory");
    }
    uint8_t *at = b->bytes + b->length;
    b->length += more;
    return at;
}

static inline void add_i16(buffer *b, int value) {
    uint8_t *at = reserve(b, 2);
    at[0] = (uint8_t)(value >> 8);
    at[1] = (uint8_t)value;
}

static inline void add_i32(buffer *b, uint32_t value) { put_u32(reserve(b, 4), value); }

static inline void add_bytes(buffer *b, const void *bytes, size_t length) { memcpy(reserve(b, length), bytes, length); }

/* int16 length and text. */
static inline void add_text(buffer *b, const char *text, size_t length) {
    add_i16(b, (int)length);
    add_bytes(b, text, length);
}

typedef struct {
    const uint8_t *at, *end;
} reader;

static inline const uint8_t *skip(reader *r, size_t bytes) {
    if ((size_t)(r->end - r->at) < bytes) die("an answer ends early");
    const uint8_t *at = r->at;
    r->at += bytes;
    return at;
}

static inline int read_i16(reader *r) { return get_i16(skip(r, 2)); }
static inline uint32_t read_i32(reader *r) { return get_u32(skip(r, 4)); }

/* Time that all threads of a process have run. /proc/PID/stat counts in ticks of 10 ms, too coarse here. */
static inline double run_seconds(int pid) {
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/task", pid);
    DIR *tasks = pid ? opendir(path) : NULL;
    if (!tasks) return 0;
    double total = 0;
    for (struct dirent *task; (task = readdir(tasks));) {
        char name[400];
        snprintf(name, sizeof name, "%s/%s/schedstat", path, task->d_name);
        FILE *file = task->d_name[0] == '.' ? NULL : fopen(name, "r");
        unsigned long long ns = 0;
        if (!file) continue;
        if (fscanf(file, "%llu", &ns) == 1) total += (double)ns / 1e9;
        fclose(file);
    }
    closedir(tasks);
    return total;
}

#endif
