"""What looks like a secret never comes through; what people write does."""

import string
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from libs.runtime.terminal import COLOUR, coloured, plain
from services.worker.attempt.secrets import ADDRESS, MASKED, PATH, Mask, for_users

LETTERS = string.ascii_letters + string.digits
SECRETS = {
    "openai": "sk-proj-Ab3dEf6hIj9kLm2nOp5qRs8t",
    "anthropic": "sk-ant-api03-Ab3dEf6hIj9kLm2nOp5qRs8t",
    "google": "AIzaSyA1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q",
    "aws": "AKIAIOSFODNN7EXAMPLE",
    "github": "ghp_Ab3dEf6hIj9kLm2nOp5qRs8tUv1wXy4z",
    "github, fine": "github_pat_11ABCDEFG0123456789_abcdefghijk",
    "gitlab": "glpat-Ab3dEf6hIj9kLm2nOp5q",
    "slack": "xoxb-123456789012-abcdefABCDEF",
    "stripe": "sk_live_Ab3dEf6hIj9kLm2nOp5q",
    "hugging face": "hf_Ab3dEf6hIj9kLm2nOp5qRs8t",
    "npm": "npm_Ab3dEf6hIj9kLm2nOp5qRs8tUv1wXy4z",
    "jwt": "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJ1MSJ9.c2lnbmF0dXJlLWhlcmU",
}
PLACES = [
    "{}",
    "the key is {}.",
    "OPENAI_API_KEY={}",
    'api_key: "{}"',
    "{{'token': '{}'}}",
    "Authorization: Bearer {}",
    "curl -H 'authorization: Bearer {}' https://api.test",
    "https://user:{}@example.test/x",
    "(see {}, twice: {})",
]
ASSIGNED = [
    ("DATABASE_PASSWORD=hunter22", "hunter22"),
    ('"password": "correct horse battery staple"', "correct horse battery staple"),
    ("PASSWD='p4ss'", "p4ss"),
    ("export SECRET_KEY=8f14e45fceea167a", "8f14e45fceea167a"),
    ("clientSecret = 'QWxhZGRpbjpvcGVuc2VzYW1l'", "QWxhZGRpbjpvcGVuc2VzYW1l"),
    ("token => a8s7d6f5g4h3j2k1", "a8s7d6f5g4h3j2k1"),
    ("X-Api-Key: 0a1b2c3d4e5f", "0a1b2c3d4e5f"),
    ('os.environ["API_TOKEN"] = "zz9plural8alpha"', "zz9plural8alpha"),
    ("redis://:s3cret@cache:6379/0", "s3cret"),
    ("https://ghu16charactersorMore99@github.test/x.git", "ghu16charactersorMore99"),
    ("Authorization: Basic dXNlcjpwYXNz", "dXNlcjpwYXNz"),
]
ORDINARY = [
    "collected 12 items",
    "tests/test_shop.py:12: AssertionError: assert 3 == 4",
    "Successfully installed fastapi-0.163.0 pydantic-2.14.1",
    "primary_key=True, max_tokens=4096, token_count: 17",
    "password: required",
    "password = None",
    'password = os.environ["PASSWORD"]',
    "API_KEY=${API_KEY}",
    "key = make_key(user, project)",
    "monkey=banana1234567890",
    "keyboard: a1b2c3d4e5f6g7h8",
    "Bearer of good news, the basic authentication is described below",
    "commit 8f14e45fceea167a5a36dedd4bea2543b1c2d3e4",
    "sha256:2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae",
    "https://docs.example.test/guide?page=2",
    "http://localhost:8080/@scope/package",
    "sort_key: created_at_descending",
    "cache_key=user:list:page",
    "the secret: keep functions short and tests shorter",
    "a token is a word; tokens: many",
    "-----BEGIN CERTIFICATE-----",
    "",
]


@pytest.mark.parametrize("secret", SECRETS.values(), ids=SECRETS)
@pytest.mark.parametrize("place", PLACES)
def test_a_key_of_a_known_shape_never_comes_through(secret: str, place: str) -> None:
    line = place.format(*[secret] * place.count("{}"))

    assert secret not in Mask().line(line)
    assert MASKED in Mask().line(line)


@pytest.mark.parametrize(("line", "secret"), ASSIGNED)
def test_what_is_assigned_to_a_name_of_secrets_never_comes_through(line: str, secret: str) -> None:
    masked = Mask().line(line)

    assert secret not in masked
    assert MASKED in masked


@pytest.mark.parametrize("line", ORDINARY)
def test_what_people_and_tools_write_comes_through_as_it_is(line: str) -> None:
    assert Mask().line(line) == line


def test_the_name_stays_so_that_a_reader_knows_what_is_masked() -> None:
    assert Mask().line("export API_KEY=sk-Ab3dEf6hIj9kLm2nOp5q  # mine") == f"export API_KEY={MASKED}  # mine"
    assert Mask().line("postgres://ann:pw@db/x") == f"postgres://{MASKED}@db/x"


def test_a_private_key_is_masked_over_all_its_lines_and_what_follows_is_not() -> None:
    mask = Mask()
    text = "before\nkey: -----BEGIN RSA PRIVATE KEY-----\nMIIEow\nIBAAKC\n-----END RSA PRIVATE KEY----- after\nlast"

    lines = mask.text(text).split("\n")

    assert lines == ["before", f"key: {MASKED}", MASKED, MASKED, f"{MASKED} after", "last"]


def test_a_private_key_on_one_line_is_masked_with_its_escapes() -> None:
    line = r'"key": "-----BEGIN PRIVATE KEY-----\nMIIEow\n-----END PRIVATE KEY-----\n", "id": 7'

    masked = Mask().line(line)

    assert "MIIEow" not in masked
    assert masked.endswith('"id": 7')


def test_a_key_without_an_end_does_not_mask_for_ever() -> None:
    mask = Mask()
    mask.line("-----BEGIN PRIVATE KEY-----")

    lines = [mask.line(f"line {number}") for number in range(300)]

    assert lines[0] == MASKED
    assert lines[-1] == "line 299"


def test_the_keys_that_this_worker_was_given_are_masked_whatever_they_look_like() -> None:
    mask = Mask(["plain words", "x"])

    assert mask.line("calling with plain words; x stays") == f"calling with {MASKED}; x stays"


@given(
    before=st.text(" .,;:()'\"=", max_size=5),
    secret=st.sampled_from(list(SECRETS.values())),
    after=st.text(" .,;:()'\"\n", max_size=5),
    around=st.text(max_size=40),
)
def test_wherever_a_key_stands_it_never_comes_through(before: str, secret: str, after: str, around: str) -> None:
    text = f"{around} {before}{secret}{after} {around}"

    assert secret not in Mask().text(text)
    assert secret not in for_users(text)


@given(st.text(st.sampled_from("abcdefghij klm nop,."), max_size=200))
def test_plain_prose_comes_through_unchanged(text: str) -> None:
    assert Mask().text(text) == text


@given(
    name=st.sampled_from(["API_KEY", "DB_PASSWORD", "authToken", "client_secret"]),
    value=st.text(LETTERS, min_size=16, max_size=60).filter(
        lambda value: any(map(str.isdigit, value)) and any(map(str.isalpha, value)) and len(set(value)) > 8
    ),
    to=st.sampled_from(["=", ": ", " = ", '="', ": '"]),
)
def test_whatever_is_random_and_assigned_to_such_a_name_never_comes_through(name: str, value: str, to: str) -> None:
    closing = to[-1] if to[-1] in "'\"" else ""

    assert value not in Mask().line(f"{name}{to}{value}{closing}")


@given(st.text(max_size=300))
def test_masking_what_is_masked_changes_nothing(text: str) -> None:
    once = Mask().text(text)

    assert Mask().text(once) == once


@pytest.mark.parametrize(
    "line",
    [
        *("a" * 8192, "key" * 2700, "key=" * 2000, "sk-" * 2700, "http://" * 1100, "/a" * 4000, "1." * 4000),
        *("-----BEGIN PRIVATE KEY-----" * 300, "eyJ" * 2700, "a:b@" * 2000, "::" * 4000, "authorization" * 600),
        *("a." * 4000, "-I/" * 2700, "a-" * 4000, "\\\\" * 4000),
    ],
)
def test_no_line_takes_long(line: str) -> None:
    began = time.thread_time()

    for_users(line)

    assert time.thread_time() - began < 2  # milliseconds; a pattern that runs away takes minutes


# ── what users read ───────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("No such file: '/home/ann/x.py'", f"No such file: '{PATH}'"),
        ("File /usr/lib/python3.11/json/x.py, line 3", f"File {PATH}, line 3"),
        (r"C:\Users\ann\x.py is missing", f"{PATH} is missing"),
        ("~/project/x", PATH),
        ("connect to 10.0.0.12:4222 refused", f"connect to {ADDRESS} refused"),
        ("localhost:5432", ADDRESS),
        ("db-1.prod.internal did not answer", f"{ADDRESS} did not answer"),
        ("nats.example.test:4222", ADDRESS),
        ("redis:6379 refused, and so does db-1:5432", f"{ADDRESS} refused, and so does {ADDRESS}"),
        ("gcc -I/usr/include -L/opt/x", f"gcc -I{PATH} -L{PATH}"),
        ("-I/usr/include", f"-I{PATH}"),
        ("see ]/tmp/x", f"see ]{PATH}"),
        (r"\\files\shared\x.py", PATH),
        ("fe80::1ff:fe23:4567:890a", ADDRESS),
        ("see https://wiki.test/page?id=3", f"see {ADDRESS}"),
        ("ask ann@example.test", f"ask {ADDRESS}"),
        ("token=a8s7d6f5g4h3j2k1 refused", f"token={MASKED} refused"),
    ],
)
def test_a_detail_tells_no_path_address_or_token(text: str, told: str) -> None:
    assert for_users(text) == told


@pytest.mark.parametrize(
    "text",
    [
        "tests/test_shop.py:12: assert 3 == 4",
        "src/shop/models.py: E501 Line too long (130 > 120)",
        "2 of 3 checks failed at 12:30:45, version 1.2.3",
        "and/or, 3/4, 1 / 2, a+b",
        "The stage code ended with ZeroDivisionError.",
        "test_app.py:12",
        "test_app.py:1204: in test_shop, E501:100",
        "../src/shop.py, ./x, src/-x/y",
    ],
)
def test_a_detail_keeps_what_helps(text: str) -> None:
    assert for_users(text) == text


@pytest.mark.parametrize(
    "line",
    [
        "\x1b[32msk-proj-Ab3dEf6hIj9kLm2nOp5qRs8t\x1b[0m",
        "key \x1b[1msk-proj-Ab3dEf\x1b[0m6hIj9kLm2nOp5qRs8t",
        "\x1b]0;x\x07sk-proj-Ab3dEf6hIj9kLm2nOp5qRs8t",
        "sk-proj-Ab3d\x1b[KEf6hIj9kLm2nOp5qRs8t",
    ],
)
def test_no_escape_sequence_hides_a_secret(line: str) -> None:
    masked = Mask().line(line)

    assert MASKED in masked
    assert "Ab3d" not in masked


def test_a_line_without_a_secret_keeps_its_colours_and_nothing_else() -> None:
    assert Mask().line("\x1b[32m3 passed\x1b[0m\x1b]52;c;eA==\x07") == "\x1b[32m3 passed\x1b[0m"


def test_what_an_open_sequence_swallows_is_looked_through_where_a_line_overwrites_itself() -> None:
    assert Mask().line("\x1b]0;x\rsk-proj-Ab3dEf6hIj9kLm2nOp5qRs8t") == MASKED
    assert Mask().line("built\x1b[32msk-proj-Ab3dEf6hIj9kLm2nOp5qRs8t") == f"built{MASKED}"


def test_a_private_key_that_begins_in_what_is_overwritten_is_masked() -> None:
    mask = Mask()

    assert mask.line("-----BEGIN PRIVATE KEY-----\rMIIEow") == MASKED
    assert mask.line("IBAAKC") == MASKED


SEQUENCES = (
    "\x1b\\",
    "\x1b]0;x",
    "\x1bP",
    "\x1b]52;c;",
    "\x1b[31m",
    "\x1b[0m",
    "\x1b[2K",
    "\x1b[",
    "\x1b(",
    "\x1b[38;5;1",
)
PIECES = st.sampled_from(["word", *SEQUENCES, *" \r\n\t\x00\x07\x1b\x85\x90\x9b\x9c\x9d\u202e"])


@given(
    before=st.lists(PIECES, max_size=6),
    secret=st.sampled_from(list(SECRETS.values())),
    after=st.lists(PIECES, max_size=6),
)
def test_no_order_of_sequences_brings_a_secret_through(before: list[str], secret: str, after: list[str]) -> None:
    word_ends = " " if before[-1:] == ["word"] else ""
    text = "".join([*before, word_ends, secret, *after])

    for shown in (Mask().line(text), Mask().text(text)):
        assert secret not in COLOUR.sub("", shown)
        assert secret not in plain(shown)
        assert secret not in COLOUR.sub("", coloured(shown))
