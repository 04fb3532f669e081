/* Background traffic: producers and fetchers that together move a stated number of bytes each second.
 *
 * Each producer connection repeats its Produce frame (one batch of a known size) at a fixed rate. Each fetcher
 * connection repeats its Fetch frame, depth 1; the offset asked for is patched and moves on by the batches that came.
 *
 * usage: stream --host H --port P --produce FILE --fetch FILE --batches-per-second R --batch-bytes N --batch-records N
 *               --produce-error-at N --fetch-error-at N --fetch-overhead N --warmup S --seconds S
 *   --batches-per-second  over all producers
 *   --fetch-overhead      bytes of a Fetch answer without records, size field included
 *   *-error-at            as in load.c
 * The frames files are those of load.c; counter_at of a Fetch frame is where its offset lies.
 * Prints one JSON object.
 */
#include "common.h"
#include <sys/timerfd.h>

#define READ_BYTES (1024 * 1024)
#define DEPTH 5 /* produce requests under way on a connection: the default of Kafka's own producer */

typedef struct {
    int fd, fetches, wants_out;
    frame_list list;
    uint32_t next_id, under_way;
    uint64_t offset, sent_ns[DEPTH];
    uint8_t *in;
    size_t in_length, in_room, sent_of_frame;
    uint32_t frames_due; /* frames accepted for sending and not wholly written */
} connection;

static int poller, produce_error_at, fetch_error_at, measuring;
static uint32_t batch_bytes, batch_records, fetch_overhead;
static uint64_t produced, fetched_bytes, fetches, late;
static histogram produce_latencies;
static error_counts errors;

static void prepare(connection *c) {
    uint8_t *bytes = c->list.frames[0].bytes;
    put_u32(bytes + CORRELATION_ID_AT, c->next_id++);
    if (c->fetches) put_u64(bytes + c->list.frames[0].counter_at, c->offset);
}

static void flush(connection *c) {
    while (c->frames_due) {
        frame *one = &c->list.frames[0];
        if (!c->sent_of_frame) prepare(c);
        ssize_t sent = write(c->fd, one->bytes + c->sent_of_frame, one->length - c->sent_of_frame);
        if (sent < 0) {
            if (errno == EAGAIN) break;
            die("write: %s", strerror(errno));
        }
        c->sent_of_frame += (size_t)sent;
        if (c->sent_of_frame < one->length) continue;
        c->sent_of_frame = 0;
        c->frames_due--;
    }
    int wants_out = c->frames_due > 0;
    if (wants_out == c->wants_out) return;
    c->wants_out = wants_out;
    struct epoll_event event = {.events = EPOLLIN | (wants_out ? EPOLLOUT : 0u), .data.ptr = c};
    epoll_ctl(poller, EPOLL_CTL_MOD, c->fd, &event);
}

static void send_one(connection *c, uint64_t due_ns) {
    c->sent_ns[(c->next_id + c->frames_due) % DEPTH] = due_ns;
    c->under_way++;
    c->frames_due++;
    flush(c);
}

static void take_answer(connection *c, const uint8_t *answer, uint32_t length) {
    int error_at = c->fetches ? fetch_error_at : produce_error_at;
    long at = error_at >= 0 ? error_at : (long)length + error_at;
    if (at < 0 || at + 2 > (long)length) die("an answer of %u bytes has no error code at %d", length, error_at);
    int16_t code = get_i16(answer + at);
    if (code && measuring) count_error(&errors, code);
    c->under_way--;
    if (!c->fetches) {
        if (!measuring) return;
        produced++;
        histogram_add(&produce_latencies, now_ns() - c->sent_ns[get_u32(answer + 4) % DEPTH]);
        return;
    }
    uint32_t record_bytes = length > fetch_overhead ? length - fetch_overhead : 0;
    c->offset += (uint64_t)(record_bytes / batch_bytes) * batch_records;
    if (measuring) fetches++, fetched_bytes += record_bytes;
}

static void receive(connection *c) {
    if (c->in_room - c->in_length < READ_BYTES) {
        c->in_room = 2 * c->in_room + READ_BYTES;
        c->in = realloc(c->in, c->in_room);
        if (!c->in) die("out of memory");
    }
    ssize_t got = read(c->fd, c->in + c->in_length, c->in_room - c->in_length);
    if (got < 0 && errno == EAGAIN) return;
    if (got <= 0) die("the server closed a connection: %s", got < 0 ? strerror(errno) : "end of stream");
    c->in_length += (size_t)got;
    size_t at = 0;
    while (c->in_length - at >= MIN_ANSWER_BYTES) {
        uint32_t length = get_u32(c->in + at) + 4;
        if (length < MIN_ANSWER_BYTES || length > MAX_FRAME_BYTES) die("an answer claims %u bytes", length);
        if (c->in_length - at < length) break;
        take_answer(c, c->in + at, length);
        at += length;
    }
    memmove(c->in, c->in + at, c->in_length - at);
    c->in_length -= at;
    if (c->fetches && !c->under_way) send_one(c, now_ns());
}

static connection *open_all(const char *path, const char *host, int port, int is_fetch, uint32_t *count) {
    frame_list *lists = read_frames(path, count);
    connection *connections = take(sizeof *connections * (*count ? *count : 1));
    for (uint32_t i = 0; i < *count; i++) {
        connection *c = &connections[i];
        c->fd = connect_to(host, port);
        c->fetches = is_fetch;
        c->list = lists[i];
        struct epoll_event event = {.events = EPOLLIN, .data.ptr = c};
        epoll_ctl(poller, EPOLL_CTL_ADD, c->fd, &event);
    }
    return connections;
}

int main(int argc, char **argv) {
    const char *host = "127.0.0.1", *produce_path = NULL, *fetch_path = NULL;
    int port = 0;
    double rate = 0, warmup_s = 1, seconds = 5;
    for (int i = 1; i + 1 < argc; i += 2) {
        const char *name = argv[i], *value = argv[i + 1];
        if (!strcmp(name, "--host")) host = value;
        else if (!strcmp(name, "--port")) port = atoi(value);
        else if (!strcmp(name, "--produce")) produce_path = value;
        else if (!strcmp(name, "--fetch")) fetch_path = value;
        else if (!strcmp(name, "--batches-per-second")) rate = atof(value);
        else if (!strcmp(name, "--batch-bytes")) batch_bytes = (uint32_t)atoi(value);
        else if (!strcmp(name, "--batch-records")) batch_records = (uint32_t)atoi(value);
        else if (!strcmp(name, "--produce-error-at")) produce_error_at = atoi(value);
        else if (!strcmp(name, "--fetch-error-at")) fetch_error_at = atoi(value);
        else if (!strcmp(name, "--fetch-overhead")) fetch_overhead = (uint32_t)atoi(value);
        else if (!strcmp(name, "--warmup")) warmup_s = atof(value);
        else if (!strcmp(name, "--seconds")) seconds = atof(value);
        else die("unknown option %s", name);
    }
    if (!produce_path || !fetch_path || !port || rate <= 0 || !batch_bytes) die("options are missing");

    poller = epoll_create1(EPOLL_CLOEXEC);
    uint32_t producers, fetchers;
    connection *producing = open_all(produce_path, host, port, 0, &producers);
    connection *fetching = open_all(fetch_path, host, port, 1, &fetchers);
    if (!producers) die("no producers");
    int timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = NULL};
    epoll_ctl(poller, EPOLL_CTL_ADD, timer, &event);
    for (uint32_t i = 0; i < fetchers; i++) send_one(&fetching[i], now_ns());

    uint64_t gap_ns = (uint64_t)(1e9 / rate), due_ns = now_ns();
    uint64_t from_ns = due_ns + (uint64_t)(warmup_s * 1e9), end_ns = from_ns + (uint64_t)(seconds * 1e9), began_ns = 0;
    uint32_t turn = 0;
    struct epoll_event events[256];
    for (;;) {
        uint64_t at_ns = now_ns();
        if (!measuring && at_ns >= from_ns) measuring = 1, began_ns = at_ns;
        if (at_ns >= end_ns) break;
        for (; due_ns <= at_ns; due_ns += gap_ns) {
            connection *c = NULL;
            for (uint32_t tried = 0; tried < producers && !c; tried++, turn = (turn + 1) % producers)
                if (producing[turn].under_way < DEPTH) c = &producing[turn];
            if (!c) {
                late++;
                break;
            }
            send_one(c, due_ns);
        }
        uint64_t wake_ns = due_ns > at_ns ? due_ns : at_ns + 200000;
        struct itimerspec when = {.it_value = {(time_t)(wake_ns / 1000000000ull), (long)(wake_ns % 1000000000ull)}};
        timerfd_settime(timer, TFD_TIMER_ABSTIME, &when, NULL);
        int ready = epoll_wait(poller, events, 256, 100);
        for (int i = 0; i < ready; i++) {
            connection *c = events[i].data.ptr;
            uint64_t expired;
            if (!c) {
                if (read(timer, &expired, sizeof expired) < 0 && errno != EAGAIN) die("timer: %s", strerror(errno));
                continue;
            }
            if (events[i].events & (EPOLLIN | EPOLLHUP | EPOLLERR)) receive(c);
            if (events[i].events & EPOLLOUT) flush(c);
        }
    }

    double elapsed = (double)(now_ns() - began_ns) / 1e9;
    printf("{\"seconds\": %.6f, \"produced_batches\": %llu, \"produced_mb_s\": %.3f, ", elapsed,
           (unsigned long long)produced, (double)produced * batch_bytes / 1e6 / elapsed);
    printf("\"fetches\": %llu, \"fetched_mb_s\": %.3f, ", (unsigned long long)fetches,
           (double)fetched_bytes / 1e6 / elapsed);
    printf("\"produce_p50_us\": %.1f, \"produce_p99_us\": %.1f, \"late\": %llu, ", histogram_us(&produce_latencies, 0.5),
           histogram_us(&produce_latencies, 0.99), (unsigned long long)late);
    print_errors(&errors);
    printf("}\n");
    return 0;
}
