"""Principals from distinguished names: the cases of Kafka's SslPrincipalMapperTest, and Java's ways to
replace."""

from __future__ import annotations

import pytest

from ringleader.coordinator.security.mapping import NoMatchingRuleError, PrincipalMapper

VALID = [
    "DEFAULT",
    "RULE:^CN=(.*?),OU=ServiceUsers.*$/$1/",
    "RULE:^CN=(.*?),OU=ServiceUsers.*$/$1/L, DEFAULT",
    "RULE:^CN=(.*?),OU=(.*?),O=(.*?),L=(.*?),ST=(.*?),C=(.*?)$/$1@$2/",
    "RULE:^.*[Cc][Nn]=([a-zA-Z0-9.]*).*$/$1/L",
    "RULE:^cn=(.?),ou=(.?),dc=(.?),dc=(.?)$/$1@$2/U",
    "RULE:^CN=([^,ADEFLTU,]+)(,.*|$)/$1/",
    "RULE:^CN=([^,DEFAULT,]+)(,.*|$)/$1/",
]
INVALID = [
    "default",
    "DEFAUL",
    "DEFAULT/L",
    "DEFAULT/U",
    "RULE:CN=(.*?),OU=ServiceUsers.*/$1",
    "rule:^CN=(.*?),OU=ServiceUsers.*$/$1/",
    "RULE:^CN=(.*?),OU=ServiceUsers.*$/$1/L/U",
    "RULE:^CN=(.*?),OU=ServiceUsers.*$/L",
    "RULE:^CN=(.*?),OU=ServiceUsers.*$/U",
    "RULE:^CN=(.*?),OU=ServiceUsers.*$/LU",
]
SPLIT = [
    ("", []),
    ("DEFAULT", ["DEFAULT"]),
    ("RULE://", ["RULE:/"]),
    ("RULE:/.*/", ["RULE:/.*"]),
    ("RULE:/.*/L", ["RULE:/.*/L"]),
    ("RULE://,DEFAULT", ["RULE:/", "DEFAULT"]),
    ("  RULE:// ,  DEFAULT  ", ["RULE:/", "DEFAULT"]),
    ("  RULE:   /     / ,  DEFAULT  ", ["RULE:   /     ", "DEFAULT"]),
    ("  RULE:  /     /U   ,DEFAULT  ", ["RULE:  /     /U", "DEFAULT"]),
    (
        "  RULE:([A-Z]*)/$1/U   ,RULE:([a-z]+)/$1/,   DEFAULT  ",
        ["RULE:([A-Z]*)/$1/U", "RULE:([a-z]+)/$1", "DEFAULT"],
    ),
    (",   , , ,      , , ,   ", []),
    (",,RULE://,,,DEFAULT,,", ["RULE:/", "DEFAULT"]),
    (",  , RULE: /   /    ,,,   DEFAULT, ,   ", ["RULE: /   ", "DEFAULT"]),
    ("     ,  , RULE:   /  /U    ,,  ,DEFAULT, ,", ["RULE:   /  /U", "DEFAULT"]),
    (r"RULE:\/\\\(\)\n\t/\/\//", [r"RULE:\/\\\(\)\n\t/\/\/"]),
    (r"RULE:\**\/+/*/L,RULE:\/*\**/**/", [r"RULE:\**\/+/*/L", r"RULE:\/*\**/**"]),
    (
        r"RULE:,RULE:,/,RULE:,\//U,RULE:,/RULE:,/,RULE:,RULE:,/L,RULE:,/L,RULE:, DEFAULT, /DEFAULT/,DEFAULT",
        [
            r"RULE:,RULE:,/,RULE:,\//U",
            "RULE:,/RULE:,",
            "RULE:,RULE:,/L,RULE:,/L",
            "RULE:, DEFAULT, /DEFAULT",
            "DEFAULT",
        ],
    ),
]


@pytest.mark.parametrize("rules", VALID)
def test_valid_rules(rules: str) -> None:
    assert PrincipalMapper(rules).rules


@pytest.mark.parametrize("rules", INVALID)
def test_invalid_rules(rules: str) -> None:
    with pytest.raises(ValueError, match="RULE:pattern/replacement/"):
        PrincipalMapper(rules)


@pytest.mark.parametrize(("rules", "split"), SPLIT)
def test_rules_are_split(rules: str, split: list[str]) -> None:
    assert ["DEFAULT" if rule is None else str(rule) for rule in PrincipalMapper(rules).rules] == split


@pytest.mark.parametrize(
    ("name", "principal"),
    [
        ("CN=Duke,OU=ServiceUsers,O=Org,C=US", "duke"),
        ("CN=Duke,OU=SME,O=mycp,L=Fulton,ST=MD,C=US", "duke@sme"),
        ("cn=duke,ou=sme,dc=mycp,dc=com", "DUKE@SME"),
        ("cN=duke,OU=JavaSoft,O=Sun Microsystems", "DUKE"),
        ("OU=JavaSoft,O=Sun Microsystems,C=US", "OU=JavaSoft,O=Sun Microsystems,C=US"),
    ],
)
def test_the_first_rule_that_matches_counts(name: str, principal: str) -> None:
    rules = (
        "RULE:^CN=(.*?),OU=ServiceUsers.*$/$1/L",
        "RULE:^CN=(.*?),OU=(.*?),O=(.*?),L=(.*?),ST=(.*?),C=(.*?)$/$1@$2/L",
        "RULE:^cn=(.*?),ou=(.*?),dc=(.*?),dc=(.*?)$/$1@$2/U",
        "RULE:^.*[Cc][Nn]=([a-zA-Z0-9.]*).*$/$1/U",
        "DEFAULT",
    )
    assert PrincipalMapper(", ".join(rules)).name(name) == principal


def test_comma_with_whitespace() -> None:
    mapper = PrincipalMapper(r"RULE:^CN=((\\, *|\w)+)(,.*|$)/$1/,DEFAULT")
    assert mapper.name(r"CN=Tkac\, Adam,OU=ITZ,DC=geodis,DC=cz") == r"Tkac\, Adam"


@pytest.mark.parametrize(
    ("rule", "principal"),
    [
        (r"RULE:CN=(\w+)/$1@$4/", "duke@$4"),
        (r"RULE:CN=(\w+)/$10/", "duke0"),
        (r"RULE:CN=()()()()()()()()(d)(\w+)/$10-$9-$11/", "uke-d-1"),
        (r"RULE:CN=(\w+)/\$1$1/", "$1duke"),
        (r"RULE:CN=(?<who>\w+)/${who}/", "duke"),
        (r"RULE:CN=(\w+)(x)?/$1$2/", "duke"),
        (r"RULE:CN=\w+/$0!/", "CN=duke!"),
        (r"RULE:.*/me/", "meme"),  # and once more for the nothing at its end
    ],
)
def test_replacements_are_java_s(rule: str, principal: str) -> None:
    assert PrincipalMapper(rule).name("CN=duke") == principal


def test_a_name_without_a_rule_is_refused() -> None:
    with pytest.raises(NoMatchingRuleError, match="is for CN=duke"):
        PrincipalMapper("RULE:^CN=admin$/admin/").name("CN=duke")


@pytest.mark.parametrize("pattern", [r"CN=(\w+", r"\p{Alpha}", "[a-z&&[^b]]", "CN=[[a]]"])
def test_a_pattern_of_java_alone_is_refused(pattern: str) -> None:
    with pytest.raises(ValueError, match="cannot be read"):
        PrincipalMapper(f"RULE:{pattern}/x/")
    with pytest.raises(ValueError, match="has no group 'who'"):
        PrincipalMapper("RULE:CN=(.*)/${who}/")
