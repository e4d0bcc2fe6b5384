"""python -m tests.frozen FILE: records the cases, with the code that is there."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from tests.frozen.cases import record

Path(sys.argv[1]).write_text(json.dumps(record(), separators=(",", ":")) + "\n", encoding="utf-8")
