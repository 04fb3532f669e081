"""Settings of brokers (DescribeConfigs), as far as they tell them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import suppress
from typing import Any, TypeVar

from ringleader.clients.connection.requests import Request, plain
from ringleader.clients.errors import ClientError
from ringleader.clients.model import Node
from ringleader.protocol.messages import (
    DescribeConfigsRequest,
    DescribeConfigsRequestDescribeConfigsResource,
)

_BROKER_RESOURCE = 4

T = TypeVar("T")


async def of_first_broker(
    brokers: Iterable[Node],
    names: Sequence[str],
    ask: Callable[[Node, Request], Awaitable[Any]],
    read: Callable[[dict[str, str | None]], T],
) -> T | None:
    """These settings of the first broker that reports them, as `read` makes them; None: none does. A broker
    that may not be asked, or is older, is passed over, as is one for which `read` raises KeyError, TypeError
    or ValueError."""
    for broker in brokers:
        resource = DescribeConfigsRequestDescribeConfigsResource(
            _BROKER_RESOURCE, str(broker.node_id), list(names)
        )
        try:
            answer = await ask(broker, plain(DescribeConfigsRequest(resources=[resource])))
        except ClientError:
            continue
        with suppress(KeyError, TypeError, ValueError):
            return read({one.name: one.value for result in answer.results for one in result.configs})
    return None
