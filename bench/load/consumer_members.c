/* One group of the consumer protocol (KIP-848) as its members see it: one thread, epoll, a connection for each member.
 *
 * 1. All join the empty group at once; until all have the same epoch, and as many partitions as an even target gives them.
 * 2. One of them leaves; until each of its partitions has another owner.
 * A member that is given or loses partitions says at once what it owns, as Java's does. Its other heartbeats leave at a
 * fixed total rate, spread evenly over the members, or, with a rate of 0, when the last answer said. Phase 2 begins after a
 * pause of nothing but heartbeats. In the end all leave, unless they are to stay.
 *
 * usage: consumer_members --port P --group NAME --members N --partitions N --heartbeats-per-second R --pause S [--host H]
 *                         [--topic T] [--server-pid PID] [--stay 1]
 * Every answer is checked: correlation id, error code, and that no partition has two owners.
 * Prints one JSON object. ConsumerGroupHeartbeat v1.
 */
#include "common.h"
#include <sys/timerfd.h>

#define READ_BYTES (64 * 1024)
#define CONNECT_AT_ONCE 32
#define TIMEOUT_NS 120000000000ull
#define REBALANCE_TIMEOUT_MS 300000
#define ID_BYTES 22
#define UUID_BYTES 16
#define NOBODY UINT32_MAX
enum { API_VERSIONS = 18, CONSUMER_GROUP_HEARTBEAT = 68 };

typedef struct {
    int fd, expects; /* the API whose answer is due, or 0 */
    uint32_t correlation_id;
    char id[ID_BYTES + 1];
    int32_t epoch;
    int news, gone; /* `news`: what it owns changed since it said so */
    uint32_t *owned, owned_count;
    uint64_t due_ns; /* its next heartbeat, where the server says when */
    buffer in;
} member;

static int poller;
static const char *group = "members", *topic = "bench";
static uint8_t topic_id[UUID_BYTES];
static member *members;
static uint32_t count, partitions, greeted, away, free_partitions;
static uint32_t *owners; /* by partition */
static int changed;      /* since `is_even` looked last */
static uint64_t heartbeats;
static buffer out;

static void finish(int api_key, member *m) {
    put_u32(out.bytes, (uint32_t)out.length - 4);
    if (write(m->fd, out.bytes, out.length) != (ssize_t)out.length) die("write: %s", strerror(errno));
    m->expects = api_key;
}

static void begin(int api_key, int version, member *m) {
    out.length = 0;
    add_i32(&out, 0);
    add_i16(&out, api_key);
    add_i16(&out, version);
    add_i32(&out, ++m->correlation_id);
    add_text(&out, "members", 7);
}

/* As every client begins; when it is answered, the server has accepted the connection. */
static void send_hello(member *m) {
    begin(API_VERSIONS, 0, m);
    finish(API_VERSIONS, m);
}

static void add_varint(buffer *b, uint32_t value) {
    for (; value > 127; value >>= 7) *reserve(b, 1) = (uint8_t)(value | 128);
    *reserve(b, 1) = (uint8_t)value;
}

static void add_compact(buffer *b, const char *text) {
    size_t length = strlen(text);
    add_varint(b, (uint32_t)length + 1);
    add_bytes(b, text, length);
}

static void add_nulls(buffer *b, size_t number) { memset(reserve(b, number), 0, number); }

static void send_heartbeat(member *m, int32_t epoch) {
    begin(CONSUMER_GROUP_HEARTBEAT, 1, m);
    add_nulls(&out, 1); /* no tagged fields in the header */
    add_compact(&out, group);
    add_compact(&out, m->id);
    add_i32(&out, (uint32_t)epoch);
    add_nulls(&out, 2); /* instance, rack */
    add_i32(&out, epoch == 0 ? REBALANCE_TIMEOUT_MS : (uint32_t)-1);
    if (epoch == 0) {
        add_varint(&out, 2);
        add_compact(&out, topic);
    } else add_nulls(&out, 1);
    add_nulls(&out, 2); /* regular expression, assignor */
    if (epoch == 0 || (m->news && !m->owned_count)) add_varint(&out, 1);
    else if (m->news && epoch > 0) {
        add_varint(&out, 2);
        add_bytes(&out, topic_id, UUID_BYTES);
        add_varint(&out, m->owned_count + 1);
        for (uint32_t i = 0; i < m->owned_count; i++) add_i32(&out, m->owned[i]);
        add_nulls(&out, 1);
    } else add_nulls(&out, 1);
    add_nulls(&out, 1); /* no tagged fields */
    m->news = 0;
    finish(CONSUMER_GROUP_HEARTBEAT, m);
    heartbeats++;
}

static uint32_t read_varint(reader *r) {
    uint32_t value = 0;
    for (int shift = 0; shift < 35; shift += 7) {
        uint8_t byte = *skip(r, 1);
        value |= (uint32_t)(byte & 127) << shift;
        if (byte < 128) break;
    }
    return value;
}

static void disown(member *m) {
    for (uint32_t i = 0; i < m->owned_count; i++) owners[m->owned[i]] = NOBODY, free_partitions++;
    m->owned_count = 0;
}

static void assigned(member *m, reader *r) {
    uint32_t topics = read_varint(r), former = m->owned_count;
    if (topics > 2) die("an assignment of %u topics", topics - 1);
    uint32_t *before = take(sizeof *before * (former + 1));
    if (former) memcpy(before, m->owned, sizeof *before * former);
    disown(m);
    for (uint32_t t = 1; t < topics; t++) {
        memcpy(topic_id, skip(r, UUID_BYTES), UUID_BYTES);
        uint32_t number = read_varint(r);
        if (number > partitions + 1) die("an assignment of %u partitions", number - 1);
        m->owned = realloc(m->owned, sizeof *m->owned * number);
        if (!m->owned) die("out of memory");
        for (uint32_t i = 0; i + 1 < number; i++) {
            uint32_t one = read_i32(r);
            if (one >= partitions || owners[one] != NOBODY) die("partition %u was given twice", one);
            owners[one] = (uint32_t)(m - members);
            m->owned[m->owned_count++] = one;
            free_partitions--;
        }
        skip(r, read_varint(r)); /* tagged fields: none */
    }
    m->news = former != m->owned_count || (former && memcmp(before, m->owned, sizeof *before * former));
    free(before);
}

static void beaten(member *m, reader *r) {
    skip(r, read_varint(r)); /* tagged fields of the header: none */
    skip(r, 4);              /* throttle time */
    int code = read_i16(r);
    if (code) die("ConsumerGroupHeartbeat: error %d", code);
    for (int i = 0; i < 2; i++) { /* error message, member id */
        uint32_t length = read_varint(r);
        skip(r, length ? length - 1 : 0);
    }
    int32_t epoch = (int32_t)read_i32(r);
    uint32_t interval_ms = read_i32(r);
    if (m->gone) {
        away++;
        return;
    }
    m->due_ns = now_ns() + interval_ms * 1000000ull;
    changed |= epoch != m->epoch;
    m->epoch = epoch;
    if (*skip(r, 1) == 1) {
        changed = 1;
        assigned(m, r);
    }
    if (m->news) send_heartbeat(m, m->epoch);
}

static void receive(member *m) {
    buffer *in = &m->in;
    reserve(in, READ_BYTES);
    in->length -= READ_BYTES;
    ssize_t got = read(m->fd, in->bytes + in->length, in->room - in->length);
    if (got < 0 && errno == EAGAIN) return;
    if (got <= 0) die("the server closed a connection: %s", got < 0 ? strerror(errno) : "end of stream");
    in->length += (size_t)got;
    if (in->length < MIN_ANSWER_BYTES) return;
    size_t size = (size_t)get_u32(in->bytes) + 4;
    if (size > MAX_FRAME_BYTES) die("an answer claims %zu bytes", size);
    if (in->length < size) return;
    if (in->length > size) die("an answer came that nobody asked for");
    if (get_u32(in->bytes + 4) != m->correlation_id || !m->expects) die("an answer came out of turn");
    reader r = {in->bytes + 8, in->bytes + size};
    int api_key = m->expects;
    in->length = 0;
    m->expects = 0;
    if (api_key == CONSUMER_GROUP_HEARTBEAT) beaten(m, &r);
    else greeted++;
}

static uint64_t heartbeat_gap_ns, heartbeat_due_ns; /* a gap of 0: each member has a time of its own */
static int timer, beating;

/* Sends the heartbeats that are due; when the next one is. A member that waits for an answer is passed over. */
static uint64_t beat(uint64_t at_ns) {
    static uint32_t turn;
    if (heartbeat_gap_ns) {
        for (; heartbeat_due_ns <= at_ns; heartbeat_due_ns += heartbeat_gap_ns) {
            member *m = &members[turn++ % count];
            if (m->epoch > 0 && !m->expects && !m->gone) send_heartbeat(m, m->epoch);
        }
        return heartbeat_due_ns;
    }
    uint64_t next_ns = at_ns + 1000000000ull;
    for (uint32_t i = 0; i < count; i++) {
        member *m = &members[i];
        if (m->epoch <= 0 || m->expects || m->gone) continue;
        if (m->due_ns <= at_ns) send_heartbeat(m, m->epoch);
        else if (m->due_ns < next_ns) next_ns = m->due_ns;
    }
    return next_ns;
}

static uint32_t connected;
static int all_greeted(void) { return greeted == connected; }
static int all_owned(void) { return !free_partitions; }
static int all_away(void) { return away == count; }
static uint64_t pause_end_ns;
static int pause_ended(void) { return now_ns() >= pause_end_ns; }

static int is_even(void) {
    if (free_partitions || !changed) return 0;
    changed = 0;
    for (uint32_t i = 0; i < count; i++) {
        member *m = &members[i];
        if (m->epoch != members[0].epoch) return 0;
        if (m->owned_count < partitions / count || m->owned_count > (partitions + count - 1) / count) return 0;
    }
    return 1;
}

/* Handles answers until `done`, and sends heartbeats while members have joined. */
static void run(int (*done)(void)) {
    struct epoll_event events[512];
    uint64_t began_ns = now_ns();
    while (!done()) {
        uint64_t at_ns = now_ns();
        if (at_ns - began_ns > TIMEOUT_NS) die("not done in time, %u partitions without an owner", free_partitions);
        if (beating) {
            uint64_t next_ns = beat(at_ns);
            struct itimerspec when = {
                .it_value = {(time_t)(next_ns / 1000000000ull), (long)(next_ns % 1000000000ull)}};
            timerfd_settime(timer, TFD_TIMER_ABSTIME, &when, NULL);
        }
        int ready = epoll_wait(poller, events, 512, 1000);
        for (int i = 0; i < ready; i++) {
            member *m = events[i].data.ptr;
            uint64_t expired;
            if (m) receive(m);
            else if (read(timer, &expired, sizeof expired) < 0 && errno != EAGAIN) die("timer: %s", strerror(errno));
        }
    }
}

static void leave(member *m) {
    m->gone = 1;
    disown(m);
    send_heartbeat(m, -1);
}

static double server_before, client_before;
static uint64_t began_ns;
static int server_pid;

static void start_phase(void) {
    heartbeats = 0;
    server_before = run_seconds(server_pid);
    client_before = own_cpu_seconds();
    began_ns = now_ns();
}

static void print_phase(const char *name) {
    double seconds = (double)(now_ns() - began_ns) / 1e9, client_s = own_cpu_seconds() - client_before;
    printf("\"%s\": {\"seconds\": %.6f, \"server_cpu_s\": %.6f, \"client_cpu_s\": %.6f, \"heartbeats\": %llu}, ", name,
           seconds, run_seconds(server_pid) - server_before, client_s, (unsigned long long)heartbeats);
}

int main(int argc, char **argv) {
    const char *host = "127.0.0.1";
    int port = 0, stay = 0;
    double rate = 20000, pause_s = 0.5;
    for (int i = 1; i + 1 < argc; i += 2) {
        const char *name = argv[i], *value = argv[i + 1];
        if (!strcmp(name, "--host")) host = value;
        else if (!strcmp(name, "--port")) port = atoi(value);
        else if (!strcmp(name, "--group")) group = value;
        else if (!strcmp(name, "--topic")) topic = value;
        else if (!strcmp(name, "--members")) count = (uint32_t)atoi(value);
        else if (!strcmp(name, "--partitions")) partitions = (uint32_t)atoi(value);
        else if (!strcmp(name, "--heartbeats-per-second")) rate = atof(value);
        else if (!strcmp(name, "--pause")) pause_s = atof(value);
        else if (!strcmp(name, "--server-pid")) server_pid = atoi(value);
        else if (!strcmp(name, "--stay")) stay = atoi(value);
        else die("unknown option %s", name);
    }
    if (!port || count < 2 || partitions < count || rate < 0)
        die("--port, two --members, and --partitions for each are needed");

    struct rlimit files;
    getrlimit(RLIMIT_NOFILE, &files);
    if (files.rlim_cur < count + 100) files.rlim_cur = files.rlim_max < count + 100 ? files.rlim_max : count + 100;
    setrlimit(RLIMIT_NOFILE, &files);

    poller = epoll_create1(EPOLL_CLOEXEC);
    timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = NULL};
    epoll_ctl(poller, EPOLL_CTL_ADD, timer, &event);
    members = take(sizeof *members * count);
    owners = take(sizeof *owners * partitions);
    memset(owners, 0xff, sizeof *owners * partitions);
    free_partitions = partitions;
    heartbeat_gap_ns = rate > 0 ? (uint64_t)(1e9 / rate) : 0;
    for (uint32_t i = 0; i < count; i++) {
        members[i].fd = connect_to(host, port);
        members[i].correlation_id = i << 12;
        snprintf(members[i].id, sizeof members[i].id, "member-%015u", i);
        event = (struct epoll_event){.events = EPOLLIN, .data.ptr = &members[i]};
        epoll_ctl(poller, EPOLL_CTL_ADD, members[i].fd, &event);
        send_hello(&members[i]);
        connected = i + 1;
        /* A few at a time: connections beyond a listener's backlog (Kafka's is 50) come up after a second or more. */
        if (connected % CONNECT_AT_ONCE == 0 || connected == count) run(all_greeted);
    }

    printf("{");
    start_phase();
    for (uint32_t i = 0; i < count; i++) send_heartbeat(&members[i], 0);
    beating = 1;
    heartbeat_due_ns = now_ns();
    run(is_even);
    print_phase("form");

    member *one = &members[count / 2];
    heartbeat_due_ns = now_ns();
    do {
        pause_end_ns = now_ns() + (uint64_t)(pause_s * 1e9);
        run(pause_ended);
    } while (one->expects); /* who leaves must have the answer to its last heartbeat */
    start_phase();
    leave(one);
    run(all_owned);
    print_phase("leave");

    beating = 0;
    for (uint32_t i = 0; i < count && !stay; i++) {
        while (members[i].expects) receive(&members[i]);
        if (!members[i].gone) leave(&members[i]);
    }
    if (!stay) run(all_away);
    printf("\"members\": %u, \"partitions\": %u, \"epoch\": %d}\n", count, partitions, members[0].epoch);
    return 0;
}
