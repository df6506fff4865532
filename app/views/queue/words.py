"""The queue in a few words, as the bar over every view, the panel and the question before quitting have them."""

from __future__ import annotations

from ...engine.session.queue import RunQueue

_NAMED = 3  # runs


def waiting_in_words(queue: RunQueue) -> str:
    """How many wait, and why none of them starts where that is so; empty while there is nothing to say."""
    count = len(queue.waiting)
    if not count:
        return "The queue is paused" if queue.paused else ""
    more = "more " if queue.current is not None else ""
    words = f"{count} {more}{'waits' if count == 1 else 'wait'}"
    if queue.paused:
        because = f": {queue.paused_because}" if queue.paused_because else ""
        return f"{words} · queue paused{because}"
    return words


def named(queue: RunQueue) -> str:
    """The runs that wait, the first of them by name: '3 runs that wait: gemm on …, …'."""
    waiting = queue.waiting
    count = "1 run that waits" if len(waiting) == 1 else f"{len(waiting)} runs that wait"
    more = f"; and {len(waiting) - _NAMED} more" if len(waiting) > _NAMED else ""
    return f"{count}: {'; '.join(run.words for run in waiting[:_NAMED])}{more}"
