"""docs/kafka-differences.md says one thing of each internal topic of Kafka, and it is true."""

from __future__ import annotations

import re
from pathlib import Path

from ringleader.protocol.messages import MetadataRequest
from ringleader.testing import Coordinator
from tests.support.rawclient import RawConnection

PAGE = Path(__file__).parents[2] / "docs" / "kafka-differences.md"


def test_internal_topics_exist_if_the_page_says_so() -> None:
    rows = [line.split("|")[1:] for line in PAGE.read_text().splitlines() if line.startswith("|")]
    missing = {
        topic
        for subject, text, *_ in rows
        if re.search(r"\bdo(es)? not exist\b", text)
        for topic in re.findall(r"`(__\w+)`", subject)
    }
    named = set(re.findall(r"`(__\w+)`", PAGE.read_text()))
    with Coordinator() as served, RawConnection(served.bootstrap) as raw:
        there = {topic.name for topic in raw.call(MetadataRequest(topics=None), 1).topics}
    assert missing, "the page has lost its rows"
    assert {"__consumer_offsets", "__transaction_state"} <= named
    assert named - missing <= there
    assert not missing & there
