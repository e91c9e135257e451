"""`python -m percolate.ingest [TENANT...]`: take new and changed documents in, beside a server that runs.

It ends with 0, or with 1 where something could not be taken in.
"""

from __future__ import annotations

import argparse
import sys

from percolate.ingest.folder import forget_others, ingest
from percolate.memory.databases import open_store
from percolate.memory.embeddings import embedder
from percolate.problems import Problem
from percolate.settings import DOCUMENTS, LIBRARY, Settings


def main() -> int:
    """Run it."""
    parser = argparse.ArgumentParser(prog="python -m percolate.ingest", description=__doc__)
    parser.add_argument("tenant", nargs="*", help=f"folder in {DOCUMENTS}/; all of them where none is named")
    parser.add_argument("--again", action="store_true", help="make vectors anew that have another length now")
    options = parser.parse_args()
    there = sorted(path.name for path in DOCUMENTS.glob("*") if path.is_dir() and path.name != LIBRARY)
    if unknown := set(options.tenant) - set(there):
        parser.error(f"there is no {DOCUMENTS}/{min(unknown)}, only {', '.join(there) or 'nothing'}")
    try:
        settings = Settings.read()
        store = open_store(settings.database)
        forget_others(store, there)
        reports = [
            ingest(store, embedder(settings), DOCUMENTS / tenant, tenant, again=options.again)
            for tenant in options.tenant or there
        ]
    except Problem as error:
        print(error, file=sys.stderr)
        return 1
    problems = [problem for report in reports for problem in report.problems]
    for problem in problems:
        print(problem, file=sys.stderr)
    print(f"{sum(report.read for report in reports)} documents read, {len(problems)} problems")
    return bool(problems)


if __name__ == "__main__":
    sys.exit(main())
