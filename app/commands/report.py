"""`wattridge report`: a session as one HTML file."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path

from ..errors import InputError
from .analyse import load_of, objective_of, preferences_of
from .sources import open_session
from .take_away import chosen_index
from .terminal import print_json, show


def report(arguments: Namespace) -> int:
    """Write what is known of a session, and of its board, into one file that any browser shows and prints."""
    from ..engine.analysis.compare import compare_sessions
    from ..engine.report.content import gather
    from ..engine.report.export import file_stem
    from ..engine.report.page import write_report
    from ..engine.store.database import Store

    if arguments.configuration is not None and arguments.choose is not None:
        raise InputError("one choice is enough", "report", "leave out --configuration or --choose")
    opened = open_session(arguments.source)
    others = [open_session(source).side for source in arguments.compare]
    path = Path(arguments.out or f"{file_stem(opened.plan.title)}-report.html")
    with Store() as store:
        content = gather(
            opened.plan,
            opened.table,
            objective_of(opened, arguments),
            store,
            record=opened.record,
            chosen=chosen_index(arguments.configuration, opened.table),
            chooser=arguments.choose,
            preferences=preferences_of(arguments),
            load=load_of(arguments),
            comparison=compare_sessions([opened.side, *others]) if others else None,
        )
    written = str(write_report(content, path).resolve())
    if arguments.json:
        print_json({"session": opened.record.id if opened.record else None, "files": [written]})
    else:
        show(written)
    return 0
