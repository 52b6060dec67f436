"""`kortex completion bash|zsh`: a script for the shell, generated from the parser of the arguments."""

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

SHELLS: Final = ("bash", "zsh")


@dataclass(frozen=True, slots=True)
class Word:
    """What may be typed at one place, with its line of help.

    `takes_value` is of options: the next word is theirs, one of `values` where those are known.
    """

    text: str
    help: str
    takes_value: bool = False
    values: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Level:
    """A command by the words that lead to it ("" for `kortex` itself), and what may follow them."""

    path: str
    words: Sequence[Word]
    below: Sequence[str]


def script(parser: argparse.ArgumentParser, shell: str) -> str:
    """What the shell sources. `shell` is one of SHELLS."""
    levels = list(_levels(parser, ""))
    return _bash(levels) if shell == "bash" else _zsh(levels)


def _levels(parser: argparse.ArgumentParser, path: str) -> Iterator[Level]:
    words: list[Word] = []
    below: dict[str, argparse.ArgumentParser] = {}
    for action in parser._actions:  # noqa: SLF001 - argparse has no public way to read a parser
        if isinstance(action, argparse._SubParsersAction):  # noqa: SLF001
            below |= action.choices
            words += [Word(str(c.dest), c.help or "") for c in action._choices_actions]  # noqa: SLF001
            continue
        values = [str(value) for value in action.choices or ()]
        told = (action.help or "") % {"default": action.default}
        takes_value = action.nargs != 0
        words += [Word(option, told, takes_value, values) for option in action.option_strings[-1:]]
        words += [Word(value, "") for value in values if not action.option_strings]
    yield Level(path, words, list(below))
    for name, child in below.items():
        yield from _levels(child, f"{path} {name}".strip())


_BASH = """\
# Completion of kortex for bash. Load it in ~/.bashrc: source <(kortex completion bash)
_kortex() {
    local current=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} path="" words="" i
    for ((i = 1; i < COMP_CWORD; i++)); do
        case "$path ${COMP_WORDS[i]}" in
            %(steps)s) path="${path:+$path }${COMP_WORDS[i]}" ;;
        esac
    done
    case "$path $before" in
%(values)s
    esac
    case "$path" in
%(words)s
    esac
    COMPREPLY=($(compgen -W "$words" -- "$current"))
}
# Where nothing is known, files: --config, packs, manifests.
complete -o default -F _kortex kortex
"""


def _bash(levels: Sequence[Level]) -> str:
    reply = 'COMPREPLY=($(compgen -W "{}" -- "$current")); return ;;'
    values = [
        f"        {places}) {reply.format(' '.join(words))}" for words, places in _after(levels)
    ]
    words = [
        f'        "{level.path}") words="{" ".join(word.text for word in level.words)}" ;;'
        for level in levels
    ]
    return _BASH % {"steps": _steps(levels), "values": "\n".join(values), "words": "\n".join(words)}


def _after(levels: Sequence[Level]) -> Iterator[tuple[Sequence[str], str]]:
    """What may follow options that take a value, and after which: none where anything may."""
    wanted = [(level.path, word) for level in levels for word in level.words if word.takes_value]
    for values in dict.fromkeys(tuple(word.values) for _, word in wanted):
        after = [f'"{path} {word.text}"' for path, word in wanted if tuple(word.values) == values]
        yield values, "|".join(after)


_ZSH = """\
#compdef kortex
# Completion of kortex for zsh. Load it in ~/.zshrc, after compinit: source <(kortex completion zsh)
compdef _kortex kortex
_kortex() {
    local place="" i
    local -a entries
    for ((i = 2; i < CURRENT; i++)); do
        case "$place ${words[i]}" in
            (%(steps)s) place="${place:+$place }${words[i]}" ;;
        esac
    done
    case "$place ${words[CURRENT-1]}" in
%(values)s
    esac
    case "$place" in
%(words)s
    esac
    _describe -t words kortex entries || _files
}
"""


def _zsh(levels: Sequence[Level]) -> str:
    values = [
        f"        ({places}) {_compadd(words)}; return ;;" for words, places in _after(levels)
    ]
    words = [
        f'        ("{level.path}") entries=({" ".join(map(_entry, level.words))}) ;;'
        for level in levels
    ]
    return _ZSH % {"steps": _steps(levels), "values": "\n".join(values), "words": "\n".join(words)}


def _compadd(words: Sequence[str]) -> str:
    return f"compadd {' '.join(words)}" if words else "_files"


def _steps(levels: Sequence[Level]) -> str:
    """Each path and the word that leads further, as patterns of a `case`."""
    return "|".join(f'"{level.path} {name}"' for level in levels for name in level.below)


def _entry(word: Word) -> str:
    told = " ".join(word.help.split()).replace("'", "’").replace("\\", "")
    return f"'{word.text.replace(':', chr(92) + ':')}:{told}'"
