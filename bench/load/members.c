/* Rebalances of one group as its members see them: one thread, epoll, a connection for each member.
 *
 * 1. The group forms: all members ask for ids (JoinGroup v5, MEMBER_ID_REQUIRED); when all have one, all join.
 * 2. One more member joins the formed group.   3. That member leaves.
 * Each takes from its first request to the last SyncGroup answer of a generation that has all members. Who is
 * answered rejoins or syncs at once. In 2 and 3 the others learn of the rebalance by their heartbeats, which leave at
 * a fixed total rate, spread evenly over the members; each of the two begins after a pause of nothing but heartbeats.
 *
 * usage: members --port P --group NAME --members N --heartbeats-per-second R --pause S [--host H] [--topic T]
 *                [--server-pid PID]
 * Every answer is checked: correlation id, error code, and that a generation gives each partition to one member.
 * Prints one JSON object. JoinGroup v5, SyncGroup v3, Heartbeat v3, LeaveGroup v3.
 */
#include "common.h"
#include <sys/timerfd.h>

#define READ_BYTES (64 * 1024)
#define CONNECT_AT_ONCE 32
#define FORM_TIMEOUT_NS 120000000000ull
/* A member of a generation that lacks members asks this often whether the next one has begun. */
#define ASK_AGAIN_NS 5000000ull
#define SESSION_TIMEOUT_MS 300000
#define REBALANCE_TIMEOUT_MS 60000
#define REBALANCE_IN_PROGRESS 27
#define MEMBER_ID_REQUIRED 79
enum { JOIN_GROUP = 11, HEARTBEAT = 12, LEAVE_GROUP = 13, SYNC_GROUP = 14, API_VERSIONS = 18 };

/* A nullable string; its length, or 0 for null. */
static int read_text(reader *r, const uint8_t **text) {
    int length = read_i16(r);
    *text = skip(r, length > 0 ? (size_t)length : 0);
    return length > 0 ? length : 0;
}

typedef struct {
    int fd, expects; /* the API whose answer is due, or 0 */
    uint32_t correlation_id;
    char id[256];
    int id_length;
    int32_t generation;
    int settled, asking, leaving;
    buffer in;
} member;

static int poller;
static const char *group = "members", *topic = "bench";
static member *members;
static uint32_t present, greeted, settled, named, wanted_names; /* `present`: how many a whole generation has */
static int32_t whole_generation = -1;                  /* whose leader saw all of them */
static int forming;
static uint32_t *asking, asking_count;
static uint8_t *given; /* by partition: whether a member of the whole generation has it */
static buffer out, subscription, join_tail;
static uint64_t heartbeats, generations;

static void begin(int api_key, int version, member *m) {
    out.length = 0;
    add_i32(&out, 0);
    add_i16(&out, api_key);
    add_i16(&out, version);
    add_i32(&out, ++m->correlation_id);
    add_text(&out, "members", 7);
    if (api_key != API_VERSIONS) add_text(&out, group, strlen(group));
}

static void finish(int api_key, member *m) {
    put_u32(out.bytes, (uint32_t)out.length - 4);
    size_t sent = 0;
    while (sent < out.length) { /* a leader's SyncGroup may fill the socket's buffer: wait, nothing else is due */
        ssize_t wrote = write(m->fd, out.bytes + sent, out.length - sent);
        if (wrote < 0 && errno != EAGAIN) die("write: %s", strerror(errno));
        if (wrote > 0) sent += (size_t)wrote;
    }
    m->expects = api_key;
}

/* As every client begins; when it is answered, the server has accepted the connection. */
static void send_hello(member *m) {
    begin(API_VERSIONS, 0, m);
    finish(API_VERSIONS, m);
}

static void send_join(member *m) {
    if (m->settled) m->settled = 0, settled--;
    begin(JOIN_GROUP, 5, m);
    add_i32(&out, SESSION_TIMEOUT_MS);
    add_i32(&out, REBALANCE_TIMEOUT_MS);
    add_text(&out, m->id, (size_t)m->id_length);
    add_bytes(&out, join_tail.bytes, join_tail.length);
    finish(JOIN_GROUP, m);
}

static void send_heartbeat(member *m) {
    begin(HEARTBEAT, 3, m);
    add_i32(&out, (uint32_t)m->generation);
    add_text(&out, m->id, (size_t)m->id_length);
    add_i16(&out, -1);
    finish(HEARTBEAT, m);
    heartbeats++;
}

static void send_leave(member *m) {
    begin(LEAVE_GROUP, 3, m);
    add_i32(&out, 1);
    add_text(&out, m->id, (size_t)m->id_length);
    add_i16(&out, -1);
    finish(LEAVE_GROUP, m);
}

/* SyncGroup; a leader gives partition i to the i-th of the members that its JoinGroup answer lists. */
static void send_sync(member *m, reader *list, uint32_t count) {
    begin(SYNC_GROUP, 3, m);
    add_i32(&out, (uint32_t)m->generation);
    add_text(&out, m->id, (size_t)m->id_length);
    add_i16(&out, -1);
    add_i32(&out, count);
    size_t topic_length = strlen(topic);
    for (uint32_t i = 0; i < count; i++) {
        const uint8_t *id, *unused;
        int length = read_text(list, &id);
        read_text(list, &unused);
        skip(list, read_i32(list));
        add_text(&out, (const char *)id, (size_t)length);
        add_i32(&out, (uint32_t)(2 + 4 + 2 + topic_length + 4 + 4 + 4));
        add_i16(&out, 0); /* consumer protocol assignment v0: topics with partitions, user data */
        add_i32(&out, 1);
        add_text(&out, topic, topic_length);
        add_i32(&out, 1);
        add_i32(&out, i);
        add_i32(&out, (uint32_t)-1);
    }
    finish(SYNC_GROUP, m);
}

static void settle(member *m) {
    if (m->generation == whole_generation) {
        m->settled = 1;
        settled++;
    } else if (!m->asking) {
        m->asking = 1;
        asking[asking_count++] = (uint32_t)(m - members);
    }
}

static void joined(member *m, reader *r) {
    skip(r, 4); /* throttle time */
    int code = read_i16(r);
    int32_t generation = (int32_t)read_i32(r);
    const uint8_t *text;
    read_text(r, &text); /* protocol name */
    read_text(r, &text); /* leader */
    int length = read_text(r, &text);
    if (code == MEMBER_ID_REQUIRED) {
        if (length > (int)sizeof m->id) die("a member id of %d bytes", length);
        memcpy(m->id, text, (size_t)length);
        m->id_length = length;
        if (++named < wanted_names) return;
        /* All at once: had the early ones gone ahead, each straggler would cost all of them a rejoin. */
        if (!forming) send_join(m);
        else for (uint32_t i = 0; i < present; i++) send_join(&members[i]);
        return;
    }
    if (code) die("JoinGroup: error %d", code);
    m->generation = generation;
    uint32_t count = read_i32(r);
    if (count) generations++;
    if (count == present) {
        whole_generation = generation;
        memset(given, 0, present);
    }
    send_sync(m, r, count);
}

static void synced(member *m, reader *r) {
    skip(r, 4);
    int code = read_i16(r);
    if (code == REBALANCE_IN_PROGRESS) {
        send_join(m);
        return;
    }
    if (code) die("SyncGroup: error %d", code);
    size_t topic_length = strlen(topic), length = read_i32(r);
    if (length != 2 + 4 + 2 + topic_length + 4 + 4 + 4) die("an assignment of %zu bytes", length);
    uint32_t partition = get_u32(skip(r, length) + 12 + topic_length);
    if (m->generation == whole_generation) {
        if (partition >= present || given[partition]) die("partition %u was given twice", partition);
        given[partition] = 1;
    }
    settle(m);
}

static void beaten(member *m, reader *r) {
    skip(r, 4);
    int code = read_i16(r);
    if (code == REBALANCE_IN_PROGRESS) send_join(m);
    else if (code) die("Heartbeat: error %d", code);
    else if (!m->settled && !m->leaving) settle(m);
}

static void left(reader *r) {
    skip(r, 4);
    int code = read_i16(r);
    if (code) die("LeaveGroup: error %d", code);
    if (read_i32(r) != 1) die("LeaveGroup: not one member in the answer");
    const uint8_t *text;
    read_text(r, &text);
    read_text(r, &text);
    if ((code = read_i16(r))) die("LeaveGroup: error %d", code);
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
    if (api_key == JOIN_GROUP) joined(m, &r);
    else if (api_key == SYNC_GROUP) synced(m, &r);
    else if (api_key == HEARTBEAT) beaten(m, &r);
    else if (api_key == LEAVE_GROUP) left(&r);
    else greeted++;
}

static uint64_t heartbeat_gap_ns, heartbeat_due_ns;
static int timer;

static void set_timer(uint64_t at_ns) {
    struct itimerspec when = {.it_value = {(time_t)(at_ns / 1000000000ull), (long)(at_ns % 1000000000ull)}};
    timerfd_settime(timer, TFD_TIMER_ABSTIME, &when, NULL);
}

/* Those that are due now; a member that waits for an answer is passed over. */
static void beat(uint64_t at_ns) {
    static uint32_t turn;
    for (; heartbeat_due_ns <= at_ns; heartbeat_due_ns += heartbeat_gap_ns) {
        if (turn >= present) turn = 0;
        member *m = &members[turn++];
        if (m->settled && !m->expects) send_heartbeat(m);
    }
}

static int all_settled(void) { return whole_generation >= 0 && settled == present; }
static int all_greeted(void) { return greeted == present; }
static uint64_t pause_end_ns;
static int pause_ended(void) { return now_ns() >= pause_end_ns; }

/* Handles answers until `done`, and sends heartbeats unless the group forms. */
static void run(int (*done)(void)) {
    struct epoll_event events[512];
    uint64_t began_ns = now_ns(), ask_ns = 0;
    while (!done()) {
        uint64_t at_ns = now_ns();
        if (at_ns - began_ns > FORM_TIMEOUT_NS) die("%u of %u members synced in time", settled, present);
        if (!forming) beat(at_ns);
        if (asking_count && at_ns >= ask_ns) {
            ask_ns = at_ns + ASK_AGAIN_NS;
            uint32_t count = asking_count;
            asking_count = 0;
            for (uint32_t i = 0; i < count; i++) {
                member *m = &members[asking[i]];
                m->asking = 0;
                if (!m->expects && !m->settled) send_heartbeat(m);
            }
        }
        if (!forming) set_timer(heartbeat_due_ns);
        else if (asking_count) set_timer(ask_ns);
        int ready = epoll_wait(poller, events, 512, 1000);
        for (int i = 0; i < ready; i++) {
            member *m = events[i].data.ptr;
            uint64_t expired;
            if (m) receive(m);
            else if (read(timer, &expired, sizeof expired) < 0 && errno != EAGAIN) die("timer: %s", strerror(errno));
        }
    }
}

static void print_phase(const char *name, uint64_t began_ns, uint64_t ended_ns, double server_s, double client_s) {
    printf("\"%s\": {\"seconds\": %.6f, \"server_cpu_s\": %.6f, \"client_cpu_s\": %.6f, \"generations\": %llu}", name,
           (double)(ended_ns - began_ns) / 1e9, server_s, client_s, (unsigned long long)generations);
}

int main(int argc, char **argv) {
    const char *host = "127.0.0.1";
    int port = 0, server_pid = 0;
    uint32_t count = 0;
    double rate = 20000, pause_s = 0.5;
    for (int i = 1; i + 1 < argc; i += 2) {
        const char *name = argv[i], *value = argv[i + 1];
        if (!strcmp(name, "--host")) host = value;
        else if (!strcmp(name, "--port")) port = atoi(value);
        else if (!strcmp(name, "--group")) group = value;
        else if (!strcmp(name, "--topic")) topic = value;
        else if (!strcmp(name, "--members")) count = (uint32_t)atoi(value);
        else if (!strcmp(name, "--heartbeats-per-second")) rate = atof(value);
        else if (!strcmp(name, "--pause")) pause_s = atof(value);
        else if (!strcmp(name, "--server-pid")) server_pid = atoi(value);
        else die("unknown option %s", name);
    }
    if (!port || !count || rate <= 0) die("--port, --members and a rate of heartbeats are needed");

    struct rlimit files;
    getrlimit(RLIMIT_NOFILE, &files);
    if (files.rlim_cur < count + 100) files.rlim_cur = files.rlim_max < count + 100 ? files.rlim_max : count + 100;
    setrlimit(RLIMIT_NOFILE, &files);

    add_i16(&subscription, 1); /* consumer protocol subscription v1: topics, user data, owned partitions */
    add_i32(&subscription, 1);
    add_text(&subscription, topic, strlen(topic));
    add_i32(&subscription, (uint32_t)-1);
    add_i32(&subscription, 0);
    add_i16(&join_tail, -1); /* no group instance id */
    add_text(&join_tail, "consumer", 8);
    add_i32(&join_tail, 1);
    add_text(&join_tail, "range", 5);
    add_i32(&join_tail, (uint32_t)subscription.length);
    add_bytes(&join_tail, subscription.bytes, subscription.length);

    poller = epoll_create1(EPOLL_CLOEXEC);
    timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = NULL};
    epoll_ctl(poller, EPOLL_CTL_ADD, timer, &event);
    members = take(sizeof *members * (count + 1)); /* the last is the one that joins later */
    asking = take(sizeof *asking * (count + 1));
    given = take(count + 1);
    heartbeat_gap_ns = (uint64_t)(1e9 / rate);
    uint64_t pause_ns = (uint64_t)(pause_s * 1e9);
    forming = 1;
    for (uint32_t i = 0; i <= count; i++) {
        members[i].fd = connect_to(host, port);
        members[i].correlation_id = i << 12;
        event = (struct epoll_event){.events = EPOLLIN, .data.ptr = &members[i]};
        epoll_ctl(poller, EPOLL_CTL_ADD, members[i].fd, &event);
        send_hello(&members[i]);
        present = i + 1;
        /* A few at a time: connections beyond a listener's backlog (Kafka's is 50) come up after a second or more. */
        if (present % CONNECT_AT_ONCE == 0 || i == count) run(all_greeted);
    }

    const char *names[] = {"form", "join", "leave"};
    member *last = &members[count];
    printf("{");
    for (int phase = 0; phase < 3; phase++) {
        present = phase == 1 ? count + 1 : count;
        if (phase == 2) last->leaving = 1, last->settled = 0, settled--;
        forming = phase == 0;
        if (!forming) {
            heartbeat_due_ns = now_ns();
            do {
                pause_end_ns = now_ns() + pause_ns;
                run(pause_ended);
            } while (last->expects); /* who leaves must have the answer to its last heartbeat */
        }
        generations = 0;
        double server_s = run_seconds(server_pid), client_s = own_cpu_seconds();
        uint64_t began_ns = now_ns();
        whole_generation = -1;
        wanted_names = phase == 0 ? count : named + 1;
        if (phase == 2) send_leave(last);
        else if (phase == 1) send_join(last);
        else for (uint32_t i = 0; i < count; i++) send_join(&members[i]);
        run(all_settled);
        uint64_t ended_ns = now_ns();
        client_s = own_cpu_seconds() - client_s;
        print_phase(names[phase], began_ns, ended_ns, run_seconds(server_pid) - server_s, client_s);
        printf(", ");
    }
    printf("\"members\": %u, \"heartbeat_interval_ms\": %.3f, \"heartbeats\": %llu}\n", count, 1e3 * count / rate,
           (unsigned long long)heartbeats);
    return 0;
}
