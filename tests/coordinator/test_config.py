"""One list of settings: flags over environment over file over default; wrong input is one sentence."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ringleader.coordinator.config import Address, Settings, SettingsError, TopicSpec, load_settings, options
from tools import settings_page


def test_documentation_is_up_to_date() -> None:
    written = settings_page.PAGE.read_text()
    assert written == settings_page.render(), "run python -m tools.settings_page"


def test_every_setting_has_kafkas_form_in_all_four_places() -> None:
    [delay] = [option for option in options() if option.field == "group_initial_rebalance_delay_ms"]
    assert delay.key == "group.initial.rebalance.delay.ms"
    assert delay.flag == "--group-initial-rebalance-delay-ms"
    assert delay.env == "RINGLEADER_GROUP_INITIAL_REBALANCE_DELAY_MS"
    assert (delay.kind, delay.default, delay.unit) == (int, 3_000, "milliseconds")
    assert all(option.description.endswith(".") for option in options())


def test_what_only_tests_change_is_no_setting(tmp_path: Path) -> None:
    assert {name for name, field in Settings.model_fields.items() if field.exclude} == {
        "group_full_retry_ms",
        "listener_name",  # not only tests: `listener.name.NAME.SETTING`
        "log_silence_ms",
        "new_member_join_timeout_ms",
        "offsets_per_step",
        "assigned_at_once",
        "confirm_interval_ms",
        "reauth_ms_by_mechanism",  # `listener.name.NAME.MECHANISM.connections.max.reauth.ms`
        "transaction_retry_ms",
        "transactional_id_max_bytes",
    }
    file = tmp_path / "r.properties"
    file.write_text("transaction.retry.ms=1\n")
    with pytest.raises(SettingsError, match="which is no setting"):
        load_settings(file=file)


def test_the_migration_policy_is_taken_in_any_letter_case_as_by_kafka() -> None:
    name = "group_consumer_migration_policy"
    assert load_settings({name: "BIDIRECTIONAL"}).group_consumer_migration_policy == "bidirectional"
    environ = {"RINGLEADER_GROUP_CONSUMER_MIGRATION_POLICY": "Disabled"}
    assert load_settings(environ=environ).group_consumer_migration_policy == "disabled"
    with pytest.raises(SettingsError, match="should be 'bidirectional', 'upgrade'"):
        load_settings({name: "NEVER"})


def test_values_reach_the_rooms() -> None:
    settings = load_settings({"group_max_size": 7, "num_partitions": "3"})
    assert (settings.group_max_size, settings.num_partitions) == (7, 3)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("r.properties", "# a comment\n! another\n\ngroup.max.size = 5\nlisten=[::1]:0\ntopic=a:1, b:2\n"),
        ("r.toml", 'listen = "[::1]:0"\ntopic = ["a:1", "b:2"]\n[group]\nmax.size = 5\n'),
    ],
)
def test_file_environment_and_flags_win_in_this_order(tmp_path: Path, name: str, text: str) -> None:
    file = tmp_path / name
    file.write_text(text)
    settings = load_settings(file=file)
    assert settings.group_max_size == 5
    assert settings.listen == Address("::1", 0)
    assert settings.topic == (TopicSpec("a", 1), TopicSpec("b", 2))
    environ = {"RINGLEADER_GROUP_MAX_SIZE": "6", "RINGLEADER_TOPIC": "c:3", "OTHER": "x"}
    settings = load_settings({"topic": []}, environ, file)
    assert (settings.group_max_size, settings.topic) == (6, (TopicSpec("c", 3),))
    settings = load_settings({"group_max_size": "7", "topic": ["d:4"]}, environ, file)
    assert (settings.group_max_size, settings.topic) == (7, (TopicSpec("d", 4),))


def test_brokers_of_a_cluster(tmp_path: Path) -> None:
    assert Settings().cluster == ()
    expected = (Address("k1", 9092), Address("::1", 9093))
    for given in ("k1:9092, [::1]:9093", ["k1:9092", "[::1]:9093"]):
        assert load_settings({"cluster": given, "node_id": "2"}).cluster == expected
    environ = {"RINGLEADER_CLUSTER": "k1:9092,[::1]:9093", "RINGLEADER_NODE_ID": "2"}
    assert load_settings(environ=environ).cluster == expected


@pytest.mark.parametrize(
    ("flags", "says"),
    [
        ({"listen": "nonsense"}, "--listen: give it as HOST:PORT"),
        ({"listen": "host:99999"}, "--listen: give it as HOST:PORT"),
        ({"topic": ["orders"]}, "--topic: give a topic as NAME:PARTITIONS"),
        ({"topic": ["orders:0"]}, "--topic: give a topic as NAME:PARTITIONS"),
        ({"topic": ["a:1", "a:2"]}, "--topic: topic a is given more than once"),
        ({"cluster": "k1:9092,k2"}, "--cluster: give it as HOST:PORT"),
        ({"cluster": "k1:0"}, "--cluster: a broker's port is not 0"),
        ({"cluster": "k1:9092"}, "cluster needs node.id: give each node"),
        ({"cluster": "k1:9092", "node_id": 1, "topic": ["a:1"]}, "topic is for a node by itself"),
        ({"cluster_groups_topic": "a b"}, "--cluster-groups-topic: "),
        ({"group_max_size": "0"}, "--group-max-size: should be greater than or equal to 1, got '0'."),
        ({"group_max_size": "many"}, "--group-max-size: should be a valid integer"),
        ({"storage_sync": "sometimes"}, "--storage-sync: should be 'full' or 'off'"),
        (
            {"group_min_session_timeout_ms": 10, "group_max_session_timeout_ms": 9},
            "group.min.session.timeout.ms is larger",
        ),
    ],
)
def test_wrong_input_is_one_sentence(flags: dict[str, object], says: str) -> None:
    with pytest.raises(SettingsError) as wrong:
        load_settings(flags)
    assert str(wrong.value).startswith(says)
    assert "\n" not in str(wrong.value)


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        ("r.properties", "group.max.sise=5", "did you mean group.max.size?"),
        ("r.properties", "zookeeper.connect=x", "which is no setting of ringleader."),
        ("r.properties", "listen", "line 1: expected NAME=VALUE"),
        ("r.properties", "group.max.size=0", "r.properties: should be greater"),
        ("r.toml", "listen = ", "cannot be read"),
    ],
)
def test_wrong_file_is_one_sentence(tmp_path: Path, name: str, text: str, says: str) -> None:
    file = tmp_path / name
    file.write_text(text)
    with pytest.raises(SettingsError) as wrong:
        load_settings(file=file)
    assert says in str(wrong.value)
    assert "\n" not in str(wrong.value)


def test_missing_and_huge_files_are_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="cannot be read: No such file"):
        load_settings(file=tmp_path / "none")
    huge = tmp_path / "huge"
    huge.write_bytes(b"#" * 2_000_000)
    with pytest.raises(SettingsError, match="larger than"):
        load_settings(file=huge)


def test_wrong_environment_names_the_variable() -> None:
    with pytest.raises(SettingsError, match="environment RINGLEADER_NODE_ID: should be a valid integer"):
        load_settings(environ={"RINGLEADER_NODE_ID": "one"})


def test_variables_of_the_process_are_read_once_and_in_the_form_of_flags(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("RINGLEADER_LISTEN", "127.0.0.1:0")
    monkeypatch.setenv("RINGLEADER_TOPIC", "a:1,b:2")
    settings = load_settings(environ=os.environ)
    assert settings.listen == Address("127.0.0.1", 0)
    assert settings.topic == (TopicSpec("a", 1), TopicSpec("b", 2))
    assert Settings().listen == Address("127.0.0.1", 9092)


@pytest.mark.parametrize(
    ("flags", "text"),
    [
        ({"cluster_security_topic": "__ringleader_groups"}, "cluster.security.topic is another topic than"),
        ({"super_users": "User:a;b"}, "--super-users: give principals as User:NAME"),
        ({"authorizer": "yes"}, "--authorizer: "),
    ],
)
def test_misspelt_settings_of_access_are_refused(flags: dict[str, object], text: str) -> None:
    with pytest.raises(SettingsError, match=text):
        load_settings(flags)
