"""carbo dashboard: optuna-dashboard on a study's storage."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from carbo.cli.arguments import add_study, command, count

if TYPE_CHECKING:
    from carbo.cli.arguments import Commands

EXAMPLES = """examples:
  carbo dashboard study.toml
  carbo dashboard study.db --port 9000
  carbo dashboard study.toml --host 0.0.0.0   open to all: there is no password"""


def add(commands: Commands) -> None:
    """carbo dashboard and its options."""
    dashboard = command(
        commands,
        "dashboard",
        "show a study in the browser, with optuna-dashboard",
        about="Serves Optuna's dashboard of a study's storage. Only this machine can see it, unless --host allows "
        "others.",
        examples=EXAMPLES,
    )
    add_study(dashboard, named=False)
    dashboard.add_argument("--host", default="127.0.0.1", help="address to listen on (default 127.0.0.1)")
    dashboard.add_argument("--port", type=count, default=8080, help="port to listen on (default 8080)")
    dashboard.set_defaults(run=_run)


def _run(arguments: argparse.Namespace) -> int:
    from carbo.tune.errors import StudyError
    from carbo.tune.reading import where
    from carbo.tune.storage import open_storage

    url = where(arguments.study, None, arguments.storage).url
    try:
        from optuna_dashboard import run_server
    except ImportError:
        raise StudyError("dashboard: expected the package optuna-dashboard, got none; "
                         "pip install 'carbo[dashboard]'") from None  # fmt: skip
    storage = open_storage(url)
    print(f"http://{arguments.host}:{arguments.port}/  (Ctrl-C stops)", flush=True)
    try:
        run_server(storage, host=arguments.host, port=arguments.port)
    except (OSError, OverflowError) as error:
        raise StudyError(f"dashboard: expected to listen on {arguments.host}:{arguments.port}, got: {error}; "
                         "choose another --port") from None  # fmt: skip
    return 0
