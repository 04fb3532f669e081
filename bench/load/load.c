/* A load generator for request/answer protocols in Kafka's framing: one thread, epoll, prepared requests.
 *
 * Each connection repeats its own frames in turn and keeps `depth` requests under way (closed loop), or sends at a
 * fixed total rate (--rate, open loop: latencies count from the moment a request was due, so a server that stalls
 * cannot hide the requests it held up). Correlation ids are patched in and checked, so are error codes.
 *
 * usage: load --host H --port P[,P...] --frames FILE --depth D --warmup S --seconds S --error-at N [--rate R] [--server-pid PID]
 *   --port      of several, each is that of the next connection, in turn
 *   --error-at  where an answer keeps its int16 error code: from the size field, or from the end when negative
 * Prints one JSON object.
 */
#include "common.h"
#include <sys/timerfd.h>

#define READ_BYTES (256 * 1024)
#define MAX_PORTS 16
#define PATIENCE_NS 30000000000ull

typedef struct {
    int fd;
    frame_list list;
    uint32_t next_frame, next_id, expected_id, under_way;
    uint64_t *sent_ns; /* ring of `depth` entries, by correlation id */
    uint8_t *in;
    size_t in_length, in_room;
    uint8_t *out;
    size_t out_start, out_end, out_room;
    int wants_out;
} connection;

static int poller, depth = 1, error_at = 13;
static int measuring;
static uint64_t answers, answer_bytes, all_answers; /* the last counts the warm-up too */
static histogram latencies;
static error_counts errors;

static void queue_frame(connection *c, uint64_t at_ns) {
    frame *one = &c->list.frames[c->next_frame];
    if (++c->next_frame == c->list.count) c->next_frame = 0;
    if (c->out_end + one->length > c->out_room) {
        memmove(c->out, c->out + c->out_start, c->out_end - c->out_start);
        c->out_end -= c->out_start;
        c->out_start = 0;
        if (c->out_end + one->length > c->out_room) {
            c->out_room = 2 * (c->out_end + one->length);
            c->out = realloc(c->out, c->out_room);
            if (!c->out) die("out of memory");
        }
    }
    uint8_t *to = c->out + c->out_end;
    memcpy(to, one->bytes, one->length);
    put_u32(to + CORRELATION_ID_AT, c->next_id);
    if (one->counter_at) put_u64(to + one->counter_at, ++one->counter);
    c->sent_ns[c->next_id % (uint32_t)depth] = at_ns;
    c->next_id++;
    c->under_way++;
    c->out_end += one->length;
}

static void flush(connection *c) {
    while (c->out_start < c->out_end) {
        ssize_t sent = write(c->fd, c->out + c->out_start, c->out_end - c->out_start);
        if (sent < 0) {
            if (errno == EAGAIN) break;
            die("write: %s", strerror(errno));
        }
        c->out_start += (size_t)sent;
    }
    int wants_out = c->out_start < c->out_end;
    if (!wants_out) c->out_start = c->out_end = 0;
    if (wants_out == c->wants_out) return;
    c->wants_out = wants_out;
    struct epoll_event event = {.events = EPOLLIN | (wants_out ? EPOLLOUT : 0u), .data.ptr = c};
    epoll_ctl(poller, EPOLL_CTL_MOD, c->fd, &event);
}

static void take_answer(connection *c, const uint8_t *answer, uint32_t length, uint64_t at_ns) {
    uint32_t id = get_u32(answer + 4);
    if (id != c->expected_id || !c->under_way) die("answer %u came where %u was due", id, c->expected_id);
    c->expected_id++;
    c->under_way--;
    all_answers++;
    if (!measuring) return;
    answers++;
    answer_bytes += length;
    histogram_add(&latencies, at_ns - c->sent_ns[id % (uint32_t)depth]);
    long at = error_at >= 0 ? error_at : (long)length + error_at;
    if (at < 0 || at + 2 > (long)length) die("an answer of %u bytes has no error code at %d", length, error_at);
    int16_t code = get_i16(answer + at);
    if (code) count_error(&errors, code);
}

/* Reads what is there; returns how many answers were whole. */
static uint32_t receive(connection *c) {
    if (c->in_room - c->in_length < READ_BYTES) {
        c->in_room = 2 * c->in_room + READ_BYTES;
        c->in = realloc(c->in, c->in_room);
        if (!c->in) die("out of memory");
    }
    ssize_t got = read(c->fd, c->in + c->in_length, c->in_room - c->in_length);
    if (got < 0 && errno == EAGAIN) return 0;
    if (got <= 0) die("the server closed a connection: %s", got < 0 ? strerror(errno) : "end of stream");
    c->in_length += (size_t)got;
    uint64_t at_ns = now_ns();
    uint32_t taken = 0;
    size_t at = 0;
    while (c->in_length - at >= MIN_ANSWER_BYTES) {
        uint32_t length = get_u32(c->in + at) + 4;
        if (length < MIN_ANSWER_BYTES || length > MAX_FRAME_BYTES) die("an answer claims %u bytes", length);
        if (c->in_length - at < length) break;
        take_answer(c, c->in + at, length, at_ns);
        at += length;
        taken++;
    }
    memmove(c->in, c->in + at, c->in_length - at);
    c->in_length -= at;
    return taken;
}

int main(int argc, char **argv) {
    const char *host = "127.0.0.1", *frames_path = NULL;
    int ports[MAX_PORTS], port_count = 0, server_pid = 0;
    double warmup_s = 1, seconds = 3, rate = 0;
    for (int i = 1; i + 1 < argc; i += 2) {
        const char *name = argv[i], *value = argv[i + 1];
        if (!strcmp(name, "--host")) host = value;
        else if (!strcmp(name, "--port"))
            for (const char *at = value; at && port_count < MAX_PORTS; at = (at = strchr(at, ',')) ? at + 1 : NULL)
                ports[port_count++] = atoi(at);
        else if (!strcmp(name, "--frames")) frames_path = value;
        else if (!strcmp(name, "--depth")) depth = atoi(value);
        else if (!strcmp(name, "--warmup")) warmup_s = atof(value);
        else if (!strcmp(name, "--seconds")) seconds = atof(value);
        else if (!strcmp(name, "--error-at")) error_at = atoi(value);
        else if (!strcmp(name, "--rate")) rate = atof(value);
        else if (!strcmp(name, "--server-pid")) server_pid = atoi(value);
        else die("unknown option %s", name);
    }
    if (!frames_path || !port_count || depth < 1) die("--frames, --port and a depth of 1 or more are needed");

    uint32_t count;
    frame_list *lists = read_frames(frames_path, &count);
    connection *connections = take(sizeof *connections * count);
    poller = epoll_create1(EPOLL_CLOEXEC);
    for (uint32_t i = 0; i < count; i++) {
        connection *c = &connections[i];
        c->fd = connect_to(host, ports[i % (uint32_t)port_count]);
        c->list = lists[i];
        c->next_id = c->expected_id = i << 20; /* distinct from the start: an answer on the wrong connection shows */
        c->sent_ns = take(sizeof(uint64_t) * (size_t)depth);
        struct epoll_event event = {.events = EPOLLIN, .data.ptr = c};
        epoll_ctl(poller, EPOLL_CTL_ADD, c->fd, &event);
    }

    uint64_t start_ns = now_ns(), from_ns = start_ns + (uint64_t)(warmup_s * 1e9), due_ns = start_ns;
    uint64_t end_ns = from_ns + (uint64_t)(seconds * 1e9), gap_ns = rate > 0 ? (uint64_t)(1e9 / rate) : 0;
    uint64_t began_ns = 0, late = 0;
    long ticks_before = 0;
    double cpu_before = 0;
    uint32_t turn = 0;
    int timer = -1;
    if (gap_ns) {
        timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
        struct epoll_event event = {.events = EPOLLIN, .data.ptr = NULL};
        epoll_ctl(poller, EPOLL_CTL_ADD, timer, &event);
    } else {
        for (uint32_t i = 0; i < count; i++) {
            for (int k = 0; k < depth; k++) queue_frame(&connections[i], now_ns());
            flush(&connections[i]);
        }
    }

    struct epoll_event events[256];
    for (;;) {
        uint64_t at_ns = now_ns();
        if (!measuring && at_ns >= from_ns) {
            measuring = 1;
            began_ns = at_ns;
            cpu_before = own_cpu_seconds();
            ticks_before = server_pid ? process_ticks(server_pid) : 0;
        }
        if (at_ns >= end_ns && answers) break;
        if (at_ns >= end_ns + PATIENCE_NS) die("no answer came in time"); /* a busy machine may hold up a short run */
        if (gap_ns) {
            for (; due_ns <= at_ns; due_ns += gap_ns) {
                connection *c = &connections[turn];
                if (c->under_way >= (uint32_t)depth) { /* due, but no room: it stays due and its latency grows */
                    late++;
                    break;
                }
                queue_frame(c, due_ns);
                flush(c);
                if (++turn == count) turn = 0;
            }
            uint64_t wake_ns = due_ns > at_ns ? due_ns : at_ns + 100000;
            struct itimerspec when = {.it_value = {(time_t)(wake_ns / 1000000000ull), (long)(wake_ns % 1000000000ull)}};
            timerfd_settime(timer, TFD_TIMER_ABSTIME, &when, NULL);
        }
        int ready = epoll_wait(poller, events, 256, 100);
        for (int i = 0; i < ready; i++) {
            connection *c = events[i].data.ptr;
            if (!c) {
                uint64_t expired;
                if (read(timer, &expired, sizeof expired) < 0 && errno != EAGAIN) die("timer: %s", strerror(errno));
                continue;
            }
            uint32_t taken = events[i].events & (EPOLLIN | EPOLLHUP | EPOLLERR) ? receive(c) : 0;
            if (!gap_ns && taken) {
                uint64_t sent_ns = now_ns();
                for (uint32_t k = 0; k < taken; k++) queue_frame(c, sent_ns);
            }
            if (taken || events[i].events & EPOLLOUT) flush(c);
        }
    }

    double elapsed = (double)(now_ns() - began_ns) / 1e9;
    long ticks = server_pid ? process_ticks(server_pid) - ticks_before : 0;
    printf("{\"connections\": %u, \"depth\": %d, \"seconds\": %.6f, \"answers\": %llu, \"answer_bytes\": %llu, ", count, depth,
           elapsed, (unsigned long long)answers, (unsigned long long)answer_bytes);
    printf("\"all_answers\": %llu, ", (unsigned long long)all_answers);
    printf("\"p50_us\": %.1f, \"p99_us\": %.1f, \"max_us\": %.1f, \"late\": %llu, ", histogram_us(&latencies, 0.5),
           histogram_us(&latencies, 0.99), (double)latencies.max_ns / 1000.0, (unsigned long long)late);
    printf("\"server_cpu_s\": %.3f, \"load_cpu_s\": %.3f, ", (double)ticks / (double)sysconf(_SC_CLK_TCK),
           own_cpu_seconds() - cpu_before);
    print_errors(&errors);
    printf("}\n");
    return 0;
}
