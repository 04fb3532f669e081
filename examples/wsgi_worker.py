"""Threads instead of an event loop: a WSGI application (as of Flask or Django), and a thread that reads a
topic and hands each record to a pool, as it would to Celery or RQ.

    pip install ringleader
    python wsgi_worker.py 127.0.0.1:9092

A server that forks (gunicorn, Celery's prefork pool) has to make the consumer in the child: in `post_fork`,
or at the signal `worker_process_init`. A copy of a consumer refuses every call.
"""

import json
import sys
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from wsgiref.simple_server import make_server

from ringleader import SyncGroupConsumer

totals = Counter()
lock = threading.Lock()


def handle(key):
    """A task. With Celery: `@app.task(acks_late=True)`."""
    with lock:
        totals[(key or b"?").decode()] += 1


def read(consumer, pool):
    """Until the consumer is stopped. The next batch is asked for when the tasks of this one are done, and so
    they are committed after their work: a crash repeats tasks and loses none. With Celery the hand-over
    counts, since its broker keeps the task: `handle.delay(...)` for each record, in place of `pool.map`."""
    for batch in consumer:
        list(pool.map(handle, batch.keys))


def application(_environ, start_response):
    with lock:
        text = json.dumps(totals).encode()
    start_response("200 OK", [("Content-Type", "application/json")])
    return [text]


def main(bootstrap):
    consumer = SyncGroupConsumer(bootstrap, "tasks", ["orders"], auto_offset_reset="earliest")
    with consumer, ThreadPoolExecutor(4) as pool, make_server("127.0.0.1", 0, application) as server:
        reader = threading.Thread(target=read, args=(consumer, pool))
        reader.start()
        threading.Thread(target=server.serve_forever).start()
        print(f"http://127.0.0.1:{server.server_port}/", flush=True)
        try:
            reader.join()
        except KeyboardInterrupt:  # not in the server's thread: wsgiref swallows it amid an answer
            consumer.stop()
            reader.join()
        server.shutdown()


if __name__ == "__main__":
    main(*sys.argv[1:])
