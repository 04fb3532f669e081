"""The nodes that are taken for dead, by whom, and the limits that keep that from causing a storm."""

from __future__ import annotations

import pytest

from ringleader.coordinator.cluster.map import ClusterMap, NodeInfo
from ringleader.coordinator.cluster.suspicion import (
    AGAIN_MS,
    MISSED_PINGS,
    MOST_SUSPICIONS,
    WINDOW_MS,
    Suspicion,
)


def a_map(*node_ids: int, controller: int = 1) -> ClusterMap:
    nodes = tuple(NodeInfo(node_id, "127.0.0.1", 9000 + node_id, "0") for node_id in node_ids)
    return ClusterMap(1, controller, nodes, ())


def node(node_id: int, cluster: ClusterMap) -> Suspicion:
    """A node that knows all others."""
    suspicion = Suspicion(node_id)
    suspicion.follow(cluster)
    for other in cluster.nodes:
        suspicion.heard(other.node_id)
    return suspicion


def misses(suspicion: Suspicion, *node_ids: int, times: int = MISSED_PINGS) -> None:
    for _ in range(times):
        for node_id in node_ids:
            suspicion.missed(node_id)


def suspects(suspicion: Suspicion, now_ms: int = 0) -> list[int]:
    return [node_id for node_id, _ in suspicion.due(now_ms)]


def test_some_pings_in_a_row_without_an_answer() -> None:
    one = node(1, a_map(1, 2, 3))
    misses(one, 2, times=MISSED_PINGS - 1)
    one.heard(2)
    misses(one, 2, times=MISSED_PINGS - 1)
    assert suspects(one) == []
    one.missed(2)
    assert one.due(0) == [(2, f"{MISSED_PINGS} pings without an answer")]


def test_a_refused_connection_is_enough() -> None:
    one = node(1, a_map(1, 2, 3))
    one.refused(3)
    assert one.due(0) == [(3, "it refuses connections")]
    one.heard(3)
    assert suspects(one, AGAIN_MS) == []


def test_a_node_that_it_never_reached_is_not_missed() -> None:
    one = Suspicion(1)
    one.follow(a_map(1, 2))
    one.refused(2)
    misses(one, 2)
    assert suspects(one) == []


def test_the_controller_speaks_and_if_it_is_gone_the_next_in_the_map() -> None:
    cluster = a_map(1, 2, 3, 4, controller=3)
    one, two, three = node(1, cluster), node(2, cluster), node(3, cluster)
    for suspicion in (one, two, three):
        suspicion.refused(4)
    assert [suspects(one), suspects(two), suspects(three)] == [[], [], [4]]
    for suspicion in (one, two):
        suspicion.refused(3)
    assert [suspects(one), suspects(two)] == [[3, 4], []]
    two.refused(1)
    assert suspects(two) == [1, 3, 4]


def test_a_node_that_misses_more_than_half_of_the_others_suspects_itself() -> None:
    one = node(1, a_map(1, 2, 3))
    misses(one, 2, 3)
    assert suspects(one) == []
    one.heard(3)
    assert suspects(one) == [2]
    pair = node(1, a_map(1, 2))
    misses(pair, 2)
    assert suspects(pair) == [2], "of two there is no majority; the fence decides"


def test_all_others_gone_for_sure_is_believed() -> None:
    one = node(1, a_map(1, 2, 3))
    one.refused(2)
    one.refused(3)
    assert suspects(one) == [2, 3]


def test_it_is_said_again_while_the_map_still_has_it() -> None:
    one = node(1, a_map(1, 2, 3))
    one.refused(2)
    assert suspects(one, 0) == [2]
    assert suspects(one, AGAIN_MS - 1) == []
    assert suspects(one, AGAIN_MS) == [2]
    one.follow(a_map(1, 3))
    assert suspects(one, 2 * AGAIN_MS) == []


@pytest.mark.parametrize("turns", range(1, MOST_SUSPICIONS + 1))
def test_a_silence_that_is_believed_is_said_again_until_the_map_follows(turns: int) -> None:
    """The last one of a window, too: what is said may get lost on its way."""
    whole, rest = a_map(1, 2, 3), a_map(1, 3)
    one, now_ms = node(1, whole), 0
    for turn in range(turns):
        misses(one, 2)
        for _ in range(3 * MOST_SUSPICIONS):
            assert suspects(one, now_ms) == [2], turn
            now_ms += AGAIN_MS
        one.follow(rest)
        assert suspects(one, now_ms) == []
        one.follow(whole)
        one.heard(2)


def test_a_node_that_is_suspected_too_often_is_left_to_its_session() -> None:
    whole, rest = a_map(1, 2, 3), a_map(1, 3)
    one = node(1, whole)
    for turn in range(MOST_SUSPICIONS):
        misses(one, 2)
        assert suspects(one, turn) == [2]
        one.follow(rest)
        one.follow(whole)
        one.heard(2)
    misses(one, 2)
    assert suspects(one, 10) == []
    one.refused(2)
    assert suspects(one, 11) == [2], "gone for sure is another thing"
    one.heard(2)
    misses(one, 2)
    assert suspects(one, WINDOW_MS + 10) == [2]


def test_a_node_that_is_not_in_the_map_says_nothing() -> None:
    one = node(1, a_map(2, 3, controller=2))
    one.refused(2)
    one.refused(3)
    assert suspects(one) == []


def test_a_node_that_is_back_at_another_address_begins_again() -> None:
    one = node(1, a_map(1, 2, 3))
    one.refused(2)
    misses(one, 3)
    moved = tuple(NodeInfo(node_id, "127.0.0.1", 9100 + node_id, "0") for node_id in (2, 3))
    one.follow(ClusterMap(2, 1, (a_map(1).nodes[0], *moved), ()))
    assert suspects(one) == []
    misses(one, 2, 3)
    assert suspects(one) == [], "it has not been reached there yet"


def test_who_is_gone_for_sure_is_not_among_the_silent() -> None:
    one = node(1, a_map(1, 2, 3, 4))
    for _ in range(MISSED_PINGS):
        one.refused(2)
    misses(one, 3)
    assert suspects(one) == [2, 3]


def test_a_silence_counts_once_however_long_it_is() -> None:
    whole, rest = a_map(1, 2, 3), a_map(1, 3)
    one = node(1, whole)
    misses(one, 2)
    for turn in range(MOST_SUSPICIONS + 1):
        assert suspects(one, turn * AGAIN_MS) == [2]
    one.follow(rest)
    one.follow(whole)
    one.heard(2)
    misses(one, 2)
    assert suspects(one, 10 * AGAIN_MS) == [2]
