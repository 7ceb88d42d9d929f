"""What to say, on the command line: a PROMPT as it is, or parts; and whether the safety preamble goes before it."""

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import NoReturn

from tabmux.names import checked_session_id

Refuse = Callable[[str], NoReturn]

SAFE_VARIABLE = "TABMUX_GEMINI_SAFE"
_SAFE_PROVIDER = "gemini"
_PARTS: Mapping[str, str] = {
    "system": "who the model shall be",
    "project": "what the work belongs to",
    "goal": "what it is for",
    "context": "material from others, which is fenced off as data",
    "question": "what is asked; required with the others",
    "output": "what the answer shall look like",
    "constraints": "what must be kept to",
}
_YES = frozenset({"1", "true", "yes", "on"})
_NO = frozenset({"", "0", "false", "no", "off"})


def add_prompt(parser: argparse.ArgumentParser) -> None:
    """Whom to ask, and what to say."""
    parser.add_argument("provider", metavar="PROVIDER", help="such as chatgpt, gemini or grok")
    parser.add_argument(
        "prompt",
        nargs="?",
        metavar="PROMPT",
        help="what to say, as it is; - or nothing reads standard input; - for one of the parts does so too",
    )
    parts = parser.add_argument_group("parts", "in place of PROMPT: what the service makes one text of")
    for name, meaning in _PARTS.items():
        parts.add_argument(f"--{name}", metavar="TEXT", help=meaning)
    parser.add_argument(
        "--benchmark-safe",
        dest="safe",
        action="store_true",
        help=f"begin the conversation with the safety preamble; {SAFE_VARIABLE}=1 does so for {_SAFE_PROVIDER}",
    )


def settle_prompt(parsed: argparse.Namespace, environment: Mapping[str, str], refuse: Refuse) -> None:
    """Make `prompt` of the prompt and its parts, a text or the parts by name, and `preamble` of what asks for one."""
    given = {name: text for name in _PARTS if (text := getattr(parsed, name)) is not None}
    parsed.prompt = _parts(parsed.prompt, given, refuse) if given else _prompt(parsed.prompt, refuse)
    parsed.preamble = "safety" if parsed.safe or _is_safe(parsed.provider, environment, refuse) else None


def settle_key(parsed: argparse.Namespace, refuse: Refuse) -> None:
    """Refuse a key that has to name a session too, and cannot."""
    if parsed.key is None or parsed.session is not None:
        return
    try:
        checked_session_id(parsed.key)
    except ValueError as error:
        refuse(f"argument --key: without --session it names the session too: {error}")


def _prompt(given: str | None, refuse: Refuse) -> str:
    """The prompt as given, or from standard input for `-` and nothing."""
    if given is None and sys.stdin.isatty():
        refuse("a PROMPT is needed; - reads it from the standard input")
    prompt = _text("the prompt", "-" if given is None else given, refuse)
    if not prompt.strip():
        refuse("the prompt is empty")
    return prompt


def _parts(prompt: str | None, given: Mapping[str, str], refuse: Refuse) -> Mapping[str, str]:
    """The parts, one of them from standard input for `-`."""
    if prompt is not None:
        refuse(f"a PROMPT is sent as it is: with --{min(given)} say it by --question")
    if "question" not in given:
        refuse(f"argument --{min(given)}: a --question is needed too")
    piped: Sequence[str] = [name for name, text in given.items() if text == "-"]
    if len(piped) > 1:
        refuse(f"argument --{piped[1]}: the standard input is --{piped[0]} already")
    parts = {name: _text(f"argument --{name}", text, refuse) for name, text in given.items()}
    if not parts["question"].strip():
        refuse("argument --question: it is empty")
    return parts


def _text(what: str, given: str, refuse: Refuse) -> str:
    """A text as given, or from standard input for `-`."""
    try:
        text = sys.stdin.read() if given == "-" else given
        text.encode()
    except UnicodeError:
        refuse(f"{what} is not text in the encoding of this terminal")
    return text


def _is_safe(provider: str, environment: Mapping[str, str], refuse: Refuse) -> bool:
    """Whether the environment asks for the preamble of this provider."""
    asked = environment.get(SAFE_VARIABLE, "").lower()
    if asked not in _YES | _NO:
        refuse(f"{SAFE_VARIABLE} is {asked!r}, which is neither 1 nor 0")
    return provider == _SAFE_PROVIDER and asked in _YES
