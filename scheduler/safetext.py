"""Text from elsewhere made safe to show: passwords in URLs are masked, what a terminal would obey is made visible."""

import re
from collections.abc import Iterable
from urllib.parse import quote, quote_plus, unquote, unquote_plus

MASK = "***"
LONGEST_URL = 4096
"""Characters that are read beyond a cut: a URL that is cut in its password would not be known as one."""
SECRET_NAME = re.compile(
    r"password|passwd|passphrase|passcode|pwd|token|secret|credential|authoriz|authentication|cookie|bearer|signature"
    r"|(?:api|access|account|app|auth|client|deploy|encryption|hmac|master|private|service|session|shared|signing|ssh"
    r"|storage|webhook)[-_. ]?key|session[-_. ]?id"
    r"|(?<![^\W_])(?:o?auth\d*|pw|pin|otp|totp|jwt|psk|sid|sig|csrf|xsrf|cvv|cvc|pass\d*$)(?![^\W_])",
    re.IGNORECASE,
)
"""What says that a value is secret: parts of a name, or for short ones (`auth`, not `author`) whole words of it."""
HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
ASSIGNED = re.compile(r"([\w.-]{1,60})['\"]?\s{0,3}[=:]\s{0,3}['\"]?")
"""A name before its value, as in a header, in JSON or in the words of a DSN."""
OF_MANY_WORDS = re.compile("authoriz|cookie", re.IGNORECASE)
VALUE, LINE = re.compile(r"[^\s&;,'\"]*"), re.compile(r"[^\r\n]*")
SHOWN_FIRST = re.compile(
    r"\b(bearer|digest|negotiate)\s{1,3}\S[^\r\n]*|\b(basic)\s{1,3}(?-i:(?=\S*[A-Z\d=])\S+)", re.IGNORECASE
)
"""How the value of a header begins that holds a secret."""
PRIVATE = re.compile(r"-----BEGIN [A-Z ]{0,40}PRIVATE KEY.*", re.DOTALL)
BEFORE_HOST = re.compile(r"(?<![^\s'\",;=])([^\s:/@'\"]{1,60}:)[^\s/@]{1,200}(?=@[\w[])")
"""The password of an address without a scheme: `user:password@host`."""
WORD = re.compile(r"\S+")
SECRETS = re.compile(
    r"([?&;](?:[a-z_]{0,40}(?:password|token|secret)|api_?key|pass|pwd)=)[^\s&;#'\"]+", re.IGNORECASE | re.ASCII
)
HIDDEN = (
    r"\x00-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\ud800-\udfff"
    r"\U000e0000-\U000e007f"
)
"""Control characters, marks of direction, and what has no width; not the joiners, which scripts and emoji need."""
IN_ONE_LINE = re.compile(f"[{HIDDEN}]")
IN_LINES = re.compile(rf"(?![\n\t])[{HIDDEN}]")


def masked(text: str) -> str:
    """Return the text with `***` for the password of each URL in it, and for secrets in the query of one."""
    if "://" not in text:
        return text
    return SECRETS.sub(rf"\1{MASK}", WORD.sub(_without_password, text))


def is_secret(name: str) -> bool:
    """Return whether the name of a value says that it is to be kept secret."""
    return bool(SECRET_NAME.search(HUMP.sub("_", name)))


def without_secrets(text: str) -> str:
    """Return a text of one or more values with `***` for those that are named secret in it, and for the credentials of
    headers, private keys and `user:password@host`. URLs are for `masked`.
    """
    text = SHOWN_FIRST.sub(lambda found: f"{found[1] or found[2]} {MASK}", PRIVATE.sub(MASK, text))
    text, at = BEFORE_HOST.sub(rf"\1{MASK}", text), 0
    parts: list[str] = []
    for found in ASSIGNED.finditer(text):
        if found.start() >= at and is_secret(found[1]):
            value = LINE if OF_MANY_WORDS.search(found[1]) else VALUE
            parts += text[at : found.end()], MASK
            at = value.match(text, found.end()).end()  # type: ignore[union-attr]
    return "".join(parts) + text[at:]


def without(text: str, secrets: Iterable[str]) -> str:
    """Return the text with `***` for these secrets, also where they are percent-encoded or decoded."""
    plain = {way for one in secrets for way in (one, unquote(one), unquote_plus(one)) if way}
    ways = plain | {quoted for one in plain for quoted in (quote(one), quote(one, ""), quote_plus(one))}
    found = "|".join(re.escape(way) for way in sorted(ways, key=len, reverse=True))
    return re.sub(found, MASK, text, flags=re.IGNORECASE) if found else text


def masked_head(text: str, longest: int) -> str:
    """Return the text, masked as far as the first `longest` characters need; the rest of a long one is not read."""
    end = longest + LONGEST_URL
    return masked(text[:end]) + text[end:]


def visible(text: str, *, lines: bool = False) -> str:
    """Return the text with control and bidi characters as `\\u001b`, the way of JSON: no terminal obeys them, and no
    line of a log is forged. With `lines` it keeps its line breaks and tabs.
    """
    if text.isprintable():
        return text
    return (IN_LINES if lines else IN_ONE_LINE).sub(_escaped, text)


def shown(value: object, longest: int = 100) -> str:
    """Return a value for a message: its beginning, however long or deep it is."""
    if isinstance(value, str | bytes):
        value = value[:longest]  # its repr has two characters more, so that it is cut below
    try:
        text = repr(value)
    except Exception as error:  # a number of thousands of digits, or an object that cannot be shown
        return f"a {type(value).__name__} that cannot be shown ({error})"
    return text if len(text) <= longest else f"{text[: longest - 1]}…"


def told(error: BaseException, longest: int = 1000) -> str:
    """Return what an error says, for a message: masked and cut, whatever its `__str__` does."""
    try:
        text = str(error)
    except BaseException as problem:
        return f"its text cannot be shown ({type(problem).__name__})"
    text = masked_head(text, longest)
    return text if len(text) <= longest else f"{text[: longest - 1]}…"


def _without_password(match: re.Match[str]) -> str:
    """Mask what stands before the last @ of a URL: a password that was not quoted may hold any sign, also a slash."""
    scheme, found, rest = match[0].partition("://")
    if not found or "@" not in rest:
        return match[0]
    is_web = scheme.lower().endswith(("http", "https"))
    end = rest[: _end_of_host(rest)].rfind("@") if is_web else rest.rfind("@")
    if end < 0:
        return match[0]
    user, given, _ = rest[:end].partition(":")
    return f"{scheme}://{user if given else ''}{given}{MASK}{rest[end:]}"


def _end_of_host(rest: str) -> int:
    """Return where the path begins, in which an @ is none of a password."""
    return min((at for mark in "/?#" if (at := rest.find(mark)) >= 0), default=len(rest))


def _escaped(match: re.Match[str]) -> str:
    character = match[0]
    if character in "\n\r\t":
        return {"\n": "\\n", "\r": "\\r", "\t": "\\t"}[character]
    units = character.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at]:02x}{units[at + 1]:02x}" for at in range(0, len(units), 2))


def counted(number: int, noun: str, nouns: str = "") -> str:
    """Return “1 slot” or “3 slots”; `nouns` is a plural that takes more than an s."""
    return f"{number} {noun}" if number == 1 else f"{number} {nouns or f'{noun}s'}"


def in_a_row(failures: int) -> str:
    """Return “1 failure” or “3 failures in a row”."""
    return counted(failures, "failure", "failures in a row")
