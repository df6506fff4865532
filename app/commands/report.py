"""`wattridge report`: a session as one HTML file."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path

from ..base.errors import InputError
from ..base.files import free_name, refuse_taken
from ..engine.session.named import chosen_index, open_session
from .analyse import limited, load_of, objective_of, preferences_of
from .arguments import add_choosing, add_force, add_goal, add_sweep, add_table, columns_of
from .terminal import print_json, say_listing, show


def report_arguments(parser: ArgumentParser) -> None:
    """Declare the options of `wattridge report`."""
    parser.add_argument(
        "source", nargs="?", metavar="SESSION|FILE", help="a session (default: the newest), a cache or a .wprofile"
    )
    parser.add_argument("--out", metavar="FILE", help="the file (default: TITLE-report.html here)")
    add_force(parser)
    parser.add_argument(
        "--configuration", metavar="NAME=VALUE,...", help="the chosen configuration (default: the best)"
    )
    parser.add_argument(
        "--compare",
        action="append",
        default=[],
        metavar="SESSION|FILE",
        help="another session or board to set it beside; may be repeated",
    )
    parser.add_argument("--choose", metavar="NAME", help="or a way to choose it: fastest, least_energy, knee, ...")
    add_goal(parser)
    add_choosing(parser)
    add_sweep(parser)
    add_table(parser)


def report(arguments: Namespace) -> int:
    """Write what is known of a session, and of its board, into one file that any browser shows and prints."""
    from ..engine.analysis.compare import compare_sessions
    from ..engine.analysis.session_analysis import analyse
    from ..engine.models.administrator import sweep_of_model
    from ..engine.profile.kept_profile import is_kept, read_profile
    from ..engine.report.content import gather
    from ..engine.report.export import file_stem
    from ..engine.report.page import write_report
    from ..engine.store.database import Store

    if arguments.configuration is not None and arguments.choose is not None:
        raise InputError("one choice is enough", "report", "leave out --configuration or --choose")
    if arguments.source is not None and is_kept(Path(arguments.source)):
        profile, _ = read_profile(Path(arguments.source))
        path = Path(arguments.out) if arguments.out else free_name(Path(f"{file_stem(profile.title)}-profile.html"))
        refuse_taken(path, force=arguments.force)
        return _said(None, write_report(profile, path), arguments.json)
    columns = columns_of(arguments)
    opened = open_session(arguments.source, columns, say_listing)
    others = [open_session(source, columns, say_listing) for source in arguments.compare]
    sides = [limited(other, arguments).side for other in (opened, *others)]
    path = Path(arguments.out) if arguments.out else free_name(Path(f"{file_stem(opened.plan.title)}-report.html"))
    refuse_taken(path, force=arguments.force)
    load = load_of(arguments)
    sweep = sweep_of_model(Path(arguments.sweep), opened.plan.gpu) if arguments.sweep else None
    with Store() as store:
        content = gather(
            opened.plan,
            analyse(opened.table, objective_of(opened, arguments), preferences=preferences_of(arguments), load=load),
            store,
            record=opened.record,
            chosen=chosen_index(arguments.configuration, opened.table),
            chooser=arguments.choose,
            load=load,
            comparison=compare_sessions(sides) if others else None,
            of_model=sweep,
        )
    return _said(opened.record.id if opened.record else None, write_report(content, path), arguments.json)


def _said(session: int | None, path: Path, as_json: bool) -> int:
    written = str(path.resolve())
    if as_json:
        print_json({"session": session, "files": [written]})
    else:
        show(written)
    return 0
