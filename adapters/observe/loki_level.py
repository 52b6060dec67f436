"""A level filter as LogQL: by a label, by structured metadata, or by what the line itself states.

A level that was pushed with the line counts most; then what Loki detected at ingest, which is a guess
(any "error" in a URL), and only where there is neither, the line.
"""

from typing import Final

from adapters.observe.levels import KEYED, KLOG, WORD, at_least

PUSHED: Final = ("level", "severity", "severity_text")
DETECTED: Final = "detected_level"
FROM_LINE: Final = ("kortex_key", "kortex_word", "kortex_klog")  # the first that is there counts


def level_stages(minimum: str) -> str:
    """Stages that keep a level and above. Raises InvalidArguments on an unknown one."""
    wanted = f'=~"(?i)\\\\[?({"|".join(sorted(at_least(minimum)))})\\\\]?"'
    pushed = " or ".join(f"{label}{wanted}" for label in PUSHED)
    not_pushed = " and ".join(f'{label}=""' for label in PUSHED)
    key, word, klog = FROM_LINE
    line = f'({key}{wanted} or ({key}="" and ({word}{wanted} or ({word}="" and {klog}{wanted}))))'
    guessed = f'({DETECTED}{wanted} or ({DETECTED}=~"(unknown)?" and {line}))'
    extracted = " ".join(
        f"| regexp `{pattern.replace('?P<level>', f'?P<{name}>')}`"
        for name, pattern in zip(FROM_LINE, (KEYED, WORD, KLOG), strict=True)
    )
    return f"{extracted} | ({pushed} or ({not_pushed} and {guessed}))"
