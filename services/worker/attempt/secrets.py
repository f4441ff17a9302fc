"""What looks like a secret, taken out of what others read.

    Mask        a job's log, line by line: keys, tokens, passwords, private keys over many lines. Escape sequences are
                taken out before it is looked; a line that holds no secret keeps its colours
    for_users   summaries and details: the same, and no path, address or name of a machine either

Owns what a secret looks like: the shapes that issuers give their keys, what stands behind a name such as `API_KEY=`,
credentials in a URL or a header, a private key in PEM, and the very keys that this worker was given. Refuses to guess
at anything else: a digest or an id is no secret, and a log that masks every long word is of no use.

Each pattern is bounded and begins with letters of its own, so a line costs a time in proportion to its length.
"""

import math
import re
from collections import Counter
from collections.abc import Iterable
from itertools import pairwise
from typing import Final

from libs.runtime.terminal import between_sequences, coloured, plain

MASKED: Final = "[masked]"
PATH: Final = "[path]"
ADDRESS: Final = "[address]"
SHORTEST_KNOWN: Final = 6  # a known key that is shorter would mask half of every text
LONGEST_PEM_LINES: Final = 200  # what has not ended by then was no key

_SHAPES: Final = re.compile(
    r"""(?x) (?<![A-Za-z0-9])(?:
      (?:sk|rk|pk)[-_](?:[a-z]+[-_])*[A-Za-z0-9_-]{16,}   # OpenAI, Anthropic, DeepSeek, Stripe
    | AIza[A-Za-z0-9_-]{30,}                              # Google
    | ya29\.[A-Za-z0-9_-]{20,}
    | (?:AKIA|ASIA)[A-Z0-9]{16}                           # AWS
    | gh[pousr]_[A-Za-z0-9]{20,} | github_pat_[A-Za-z0-9_]{20,}
    | gl(?:pat|dt|rt|cbt)-[A-Za-z0-9_-]{16,}              # GitLab
    | xox[a-z]-[A-Za-z0-9-]{10,} | xapp-[A-Za-z0-9-]{10,} # Slack
    | whsec_[A-Za-z0-9+/=]{16,}
    | hf_[A-Za-z0-9]{20,} | npm_[A-Za-z0-9]{20,} | pypi-[A-Za-z0-9_-]{20,}
    | dop_v1_[a-f0-9]{32,} | SG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}
    | eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}(?:\.[A-Za-z0-9_-]*)?   # JWT
    )"""
)
_HEADER: Final = re.compile(r"(?i)\b((?:proxy-)?authorization[\"']?\s{0,4}[:=]\s{0,4}[\"']?)([^\r\n\"']+)")
_BEARER: Final = re.compile(r"(?i)\b(bearer|basic)(\s{1,4})([A-Za-z0-9._~+/=-]{8,})")
_IN_URL: Final = re.compile(r"(?i)\b([a-z][a-z0-9+.-]{1,20}://)(?:[^\s/@:]*:[^\s/@]+|[^\s/@:]{16,})@")
_ASSIGNED: Final = re.compile(
    r"(?i)(key|token|secret|password|passwd|passphrase|credentials?)(?P<to>[\"'\]]{0,2}\s{0,4}(?:=>?|:)\s{0,4})"
    r"(?P<value>\"[^\"\r\n]*\"|'[^'\r\n]*'|[^\s\"'`,;)}\]]+)"
)
_PEM_BEGIN: Final = re.compile(r"-----BEGIN [A-Z ]{0,40}PRIVATE KEY(?: BLOCK)?-----")
_PEM_END: Final = re.compile(r"-----END [A-Z ]{0,40}PRIVATE KEY(?: BLOCK)?-----")
_ONLY_A_NAME: Final = re.compile(r"(?i)^(?:none|null|true|false|str|string|bytes|required|optional|undefined|\*+)$")
_FROM_ELSEWHERE: Final = re.compile(r"^(?:[$<{(\[%*]|os\.|env|process\.env|settings\.|self\.|[A-Za-z_.]+\()")
_WORDY: Final = re.compile(r"^[A-Za-z]+(?:[ _.-][A-Za-z]+)*$")

_URL: Final = re.compile(r"(?i)\b[a-z][a-z0-9+.-]{1,20}://[^\s\"'<>]+")
_MAIL: Final = re.compile(r"[A-Za-z0-9._%+-]{1,64}@[A-Za-z0-9.-]{1,128}")
_IPV4: Final = re.compile(r"(?<![\w.])(?:\d{1,3}\.){3}\d{1,3}(?::\d{1,5})?(?![\w.])")
_IPV6: Final = re.compile(
    r"(?<![\w:])\[?(?=[0-9a-fA-F:]{0,39}::|(?:[0-9a-fA-F]{1,4}:){5})[0-9a-fA-F:]{3,39}\]?(?::\d{1,5})?(?![\w:])"
)
_HOST: Final = re.compile(
    r"(?i)(?<![\w.-])(?:localhost|[a-z0-9-]{1,63}(?:\.[a-z0-9-]{1,63}){1,8})"
    r"(?:(?<=\.internal)|(?<=\.local)|(?<=\.svc)|(?<=\.lan)|(?<=localhost)|:\d{2,5})(?::\d{2,5})?(?![\w-])"
)
_SERVICE: Final = re.compile(
    r"(?i)(?<![\w./:-])[a-z][a-z0-9-]{1,62}:\d{4,5}(?![\w:.-])"
)  # as containers call each other
_PATH: Final = re.compile(
    r"""(?x)
    (?: (?<![\w.~/-]) | (?<=[\s(=]-) | (?<=^-) | (?<=[\s(=]-[A-Za-z]) | (?<=^-[A-Za-z]) )  # also options: -I/usr
    ~?/(?:[\w.@+~=%-]+/)*[\w.@+~=%-]+/?
    | \b[A-Za-z]:\\[^\s\"']+ | \\\\[\w.-]+\\[^\s\"']+"""
)
_SOURCE: Final = re.compile(
    r"(?i)\.(?:py|pyi|js|jsx|ts|tsx|mjs|css|html?|md|rst|txt|toml|json|ya?ml|cfg|ini|lock|sh|sql|rs|go|c|h|j2):\d+$"
)


class Mask:
    """For the lines of one text, in order: a private key is masked to its end, over however many lines."""

    def __init__(self, known: Iterable[str] = ()) -> None:
        self._known = sorted({word for word in known if len(word) >= SHORTEST_KNOWN}, key=len, reverse=True)
        self._pem_lines = 0

    def line(self, line: str) -> str:
        """What is shown is what was looked through: of what overwrites itself the last state, after all before it."""
        *overwritten, last = line.rstrip("\r\n").split("\r")
        for part in overwritten:  # a private key may begin there
            self._bare(part)
        masked, shown = self._bare(last), coloured(last)
        return shown if masked == plain(shown) else masked

    def _bare(self, line: str) -> str:
        """Without sequences. One may stand in the middle of a secret, or join it to the word before."""
        masked = self._line(plain(line))
        for part in between_sequences(line):
            for secret in _SHAPES.findall(plain(part)):
                masked = masked.replace(secret, MASKED)
        return masked

    def _line(self, line: str) -> str:
        if self._pem_lines:
            return self._inside_a_key(line)
        begun = _PEM_BEGIN.search(line)
        if begun is None:
            return self._masked(line)
        ended = _PEM_END.search(line, begun.end())
        if ended is None:
            self._pem_lines = 1
            return self._masked(line[: begun.start()]) + MASKED
        return self._masked(line[: begun.start()]) + MASKED + self._line(line[ended.end() :])

    def text(self, text: str) -> str:
        """Many lines, without colours."""
        return "\n".join(self._bare(line) for line in text.split("\n"))

    def _inside_a_key(self, line: str) -> str:
        ended = _PEM_END.search(line)
        self._pem_lines = 0 if ended or self._pem_lines >= LONGEST_PEM_LINES else self._pem_lines + 1
        return MASKED + self._line(line[ended.end() :]) if ended else MASKED

    def _masked(self, line: str) -> str:
        for word in self._known:
            line = line.replace(word, MASKED)
        line = _IN_URL.sub(rf"\1{MASKED}@", line)
        line = _HEADER.sub(rf"\1{MASKED}", line)
        line = _SHAPES.sub(MASKED, line)
        line = _BEARER.sub(_bearer, line)
        return _ASSIGNED.sub(_assignment, line)


def for_users(text: str, *, known: Iterable[str] = ()) -> str:
    """A text that tells a job's user what went wrong, and nothing of the machine it went wrong on."""
    text = Mask(known).text(text)
    for pattern, mark in ((_URL, ADDRESS), (_MAIL, ADDRESS), (_IPV4, ADDRESS), (_IPV6, ADDRESS)):
        text = pattern.sub(mark, text)
    text = _SERVICE.sub(ADDRESS, _HOST.sub(_host, text))
    return _PATH.sub(PATH, text)


def _bearer(found: re.Match[str]) -> str:
    kind, gap, value = found.groups()
    return f"{kind}{gap}{MASKED}" if _is_random(value, shortest=8) else found[0]


def _assignment(found: re.Match[str]) -> str:
    """What is given to a name that ends so, where it can be a secret."""
    name, value = found[1], found["value"]
    if not _begins_a_word(found.string, found.start()):
        return found[0]
    quote = value[0] if value[0] in "\"'" else ""
    bare = value.strip("\"'") if quote else value
    is_said_outright = name.lower().startswith("pass") and (quote or "=" in found["to"])
    is_secret = _can_be_a_password(bare) if is_said_outright else _is_random(bare, shortest=10)
    return f"{name}{found['to']}{quote}{MASKED}{quote}" if is_secret else found[0]


def _begins_a_word(text: str, at: int) -> bool:
    """`api_key`, `apiKey` and `KEY` end in a key; `monkey` does not."""
    before = text[at - 1] if at else " "
    return not before.isalnum() or (text[at].isupper() and (before.islower() or before.isdigit()))


def _can_be_a_password(value: str) -> bool:
    return len(value) >= 4 and not _ONLY_A_NAME.match(value) and not _FROM_ELSEWHERE.match(value)


def _is_random(value: str, *, shortest: int) -> bool:
    """No person would call a thing so: letters and digits mixed, or many different ones in no word's order."""
    if len(value) < shortest or MASKED in value or _ONLY_A_NAME.match(value) or _FROM_ELSEWHERE.match(value):
        return False
    if any(map(str.isalpha, value)) and any(map(str.isdigit, value)):
        return _bits(value) >= 2.5
    return _looks_mixed(value) or (len(value) >= 20 and not _WORDY.match(value) and _bits(value) >= 3.5)


def _looks_mixed(value: str) -> bool:
    """Large and small letters in turn, which no name does for long."""
    turns = sum(a.islower() and b.isupper() for a, b in pairwise(value))
    return len(value) >= 16 and turns * 5 >= len(value)


def _bits(value: str) -> float:
    """Shannon's entropy, a character."""
    shares = [count / len(value) for count in Counter(value).values()]
    return -sum(share * math.log2(share) for share in shares)


def _host(found: re.Match[str]) -> str:
    return found[0] if _SOURCE.search(found[0]) else ADDRESS
