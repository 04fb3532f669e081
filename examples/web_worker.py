"""A web application that reads a topic in the background. Written for Starlette; FastAPI takes the same
`lifespan`.

    pip install ringleader            # starlette and uvicorn come with it
    BOOTSTRAP=127.0.0.1:9092 uvicorn web_worker:app

    curl http://127.0.0.1:8000/totals
    curl http://127.0.0.1:8000/health

Start one process for each core (`uvicorn --workers 4`): they share the partitions.
"""

import asyncio
import contextlib
import os
from collections import Counter

from starlette.applications import Starlette
from starlette.responses import JSONResponse
from starlette.routing import Route

from ringleader import GroupConsumer


async def read(consumer, totals):
    async for batch in consumer:  # ends when the consumer is stopped
        for record in batch:
            totals[(record.key or b"?").decode()] += 1


@contextlib.asynccontextmanager
async def lifespan(app):
    app.state.totals = Counter()
    consumer = GroupConsumer(os.environ["BOOTSTRAP"], "totals", ["orders"], auto_offset_reset="earliest")
    await consumer.start()  # fails here, and so does the start of the application, when nobody can be reached
    app.state.reading = asyncio.create_task(read(consumer, app.state.totals))
    try:
        yield
    finally:
        await consumer.stop()  # what is processed is committed, and the others get the partitions at once
        await asyncio.gather(app.state.reading, return_exceptions=True)


async def totals(request):
    return JSONResponse(dict(request.app.state.totals))


async def health(request):
    """503 when the reading has ended, by an error that no retry cures: have the process restarted."""
    reading = request.app.state.reading
    if reading.done():
        return JSONResponse({"reading": False, "why": repr(reading.exception())}, 503)
    return JSONResponse({"reading": True})


app = Starlette(routes=[Route("/totals", totals), Route("/health", health)], lifespan=lifespan)
