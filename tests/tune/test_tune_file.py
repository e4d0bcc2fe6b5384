"""Study files: what they may say, and the one line that answers what they may not."""

from __future__ import annotations

import datetime
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import carbo
from carbo.tune.arguments import Point, arguments, shell_line, template
from carbo.tune.compatibility import Change, changes, description, read_description, refuse_changes
from carbo.tune.errors import StudyError
from carbo.tune.evaluate import check_program, command_text
from carbo.tune.formatting import clock, duration, number, settings
from carbo.tune.keyed_table import locate
from carbo.tune.study_file import STUDY_KEYS, StudyFile, loads
from carbo.tune.study_template import EXAMPLE, Draft, text, toml, variable

HERE = Path("study.toml")
FULL = """
constraints = ["level < 3 or fast", "cc in ['gcc', 'clang']"]

[study]
name = "everything"
direction = "maximize"
budget = 50
deadline = "1h30m"
timeout = "500ms"
repeats = 3
aggregate = "median"
workers = 4
seed = 7
preset = "paper"
storage = "sqlite:///elsewhere.db"
give_up = 0
heartbeat = 5

[settings]
samples = 2

[command]
run = ["{cc}", "-O{level}", "{fast}", "{math}", "--ratio={ratio}", "--size={size}", "{{x}}", "{tmp}/a.out"]
cwd = "sub"
env = { MODE = "{mode}" }

[value]
from = "json"
field = "a.0.b"
file = "{tmp}/out.json"

[variables.cc]
kind = "categorical"
choices = ["gcc", "g++", "clang"]
graph = [["gcc", "g++", 2.0], ["gcc", "clang"]]

[variables.level]
kind = "ordinal"
choices = [0, 1, 2, 3]

[variables.fast]
kind = "binary"
flag = "-funroll-loops"

[variables.math]
kind = "binary"
flags = ["-fno-fast-math", "-ffast-math"]

[variables.ratio]
kind = "float"
low = 0.5
high = 2
points = 4

[variables.size]
kind = "integer"
low = 1
high = 100
log = true

[variables.mode]
kind = "binary"

[[start]]
cc = "gcc"
level = 2
fast = true
math = false
ratio = 0.5
size = 100
mode = false
"""
SMALL = """
[study]
budget = 5
[command]
run = ["prog", "{x}", "{y}"]
[variables.x]
kind = "ordinal"
choices = [1, 2, 3]
[variables.y]
kind = "binary"
"""


def read(text: str) -> StudyFile:
    return loads(text, HERE)


def test_everything_that_a_file_can_say_is_understood(tmp_path: Path) -> None:
    file = loads(FULL, tmp_path / "study.toml")
    plan = file.plan
    assert (file.name, file.direction, plan.budget, plan.deadline) == ("everything", "maximize", 50, 5400.0)
    assert (plan.timeout, plan.repeats, plan.aggregate, plan.workers) == (0.5, 3, "median", 4)
    assert (plan.seed, plan.preset, plan.settings, plan.give_up, plan.heartbeat) == (7, "paper", {"samples": 2}, 0, 5)
    assert file.storage == f"sqlite:///{tmp_path}/elsewhere.db"
    assert file.space.variables["ratio"] == carbo.Float(0.5, 2.0, points=4)
    assert file.space.variables["size"] == carbo.Integer(1, 100, log=True)
    weights = [[0, 2, 1], [2, 0, 0], [1, 0, 0]]
    assert file.space.variables["cc"] == carbo.Categorical(["gcc", "g++", "clang"], graph=weights)
    assert file.flags == {"fast": ("", "-funroll-loops"), "math": ("-fno-fast-math", "-ffast-math")}
    assert file.starts[0]["size"] == 100
    permitted = file.space.all_rows(limit=10**6)
    assert all(p["level"] < 3 or p["fast"] for p in file.space.decode_many(permitted[:200]))
    assert not any(p["cc"] == "g++" for p in file.space.decode_many(permitted))


def test_a_small_file_gets_sensible_defaults(tmp_path: Path) -> None:
    file = loads(SMALL, tmp_path / "my.toml")
    assert file.name == "my"
    assert file.storage == f"sqlite:///{tmp_path}/my.db"
    assert (file.direction, file.plan.workers, file.plan.repeats) == ("minimize", 1, 1)
    assert (file.plan.timeout, file.plan.seed, file.plan.deadline) == (None, None, None)
    assert (file.value.reader, file.value.stream) == ("last-number", "stdout")


def test_a_storage_may_take_its_password_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    text = SMALL.replace("budget = 5", 'budget = 5\nstorage = "postgresql://me:${SECRET_1}@host/db"')
    monkeypatch.setenv("SECRET_1", "p4ss")
    assert read(text).storage == "postgresql://me:p4ss@host/db"
    monkeypatch.delenv("SECRET_1")
    with pytest.raises(StudyError, match=r"study\.storage: expected an environment variable that is set"):
        read(text)


def test_a_deadline_may_be_a_moment() -> None:
    file = read(SMALL.replace("budget = 5", "deadline = 2030-01-02T03:04:05Z"))
    assert file.plan.deadline == datetime.datetime(2030, 1, 2, 3, 4, 5, tzinfo=datetime.UTC)


def edited(old: str, new: str) -> str:
    assert old in SMALL
    return SMALL.replace(old, new)


WRONG = [
    ("a = 1\nnonsense\n", "study.toml: expected TOML, got an error: Expected '=' after a key"),
    ("a = 1\nnonsense\n", "(at line 2, column 9)"),
    ("", "study: expected a table [study]"),
    (edited("budget = 5", "budgt = 5"), "line 3: study.budgt: expected a key out of"),
    (edited("budget = 5", "budgt = 5"), "got 'budgt'; did you mean 'budget'?"),
    (edited("budget = 5", "budget = 0"), "line 3: study.budget: expected a whole number >= 1, got 0"),
    (edited("budget = 5", "budget = 2.5"), "study.budget: expected a whole number, got 2.5"),
    (edited("budget = 5", "budget = true"), "study.budget: expected a whole number, got True"),
    (edited("budget = 5", ""), "expected a budget or a deadline, got neither"),
    (edited("budget = 5", 'budget = 5\ntimeout = "soon"'), 'study.timeout: expected a duration like 90, "90s"'),
    (edited("budget = 5", 'budget = 5\ndirection = "min"'), "got 'min'; did you mean 'minimize'?"),
    (edited("budget = 5", 'budget = 5\npreset = "best"'), "study.preset: expected one of default, paper"),
    (edited("budget = 5", 'budget = 5\nconstraints = "x < 2"'), "study.constraints: expected a list, got 'x < 2'"),
    (edited("budget = 5", 'budget = 5\nconstraints = ["x <"]'), "line 4: constraint 'x <': expected an expression"),
    (edited("budget = 5", 'budget = 5\nconstraints = ["z < 2"]'), "got 'z'"),
    (edited("budget = 5", 'budget = 5\nconstraints = ["x < y / 0"]'), "division by zero (with x=1, y=False)"),
    (edited("budget = 5", 'budget = 5\nconstraints = ["x > 3"]'), "expected True for some points"),
    (edited("[command]", "[settings]\nsampels = 3\n[command]"), "settings: setting 'sampels': no such setting"),
    (edited("[command]", "[comand]"), "comand: expected a key out of"),
    (edited('run = ["prog", "{x}", "{y}"]', ""), "command.run: expected a list, got nothing"),
    (edited('run = ["prog", "{x}", "{y}"]', 'run = "prog {x} {y}"'), "shell = true for one line"),
    (edited('run = ["prog", "{x}", "{y}"]', "run = []"), "expected a program and its arguments"),
    (edited('"{x}"', '"{xx}"'), "line 5: command.run: expected a placeholder out of x, y, trial, repeat, tmp, params"),
    (edited('"{x}"', '"{xx}"'), "got {xx} in '{xx}'; did you mean 'x'?"),
    (edited('"{x}"', '"{x"'), "got a single '{' in '{x'; write {{"),
    (edited('"{x}"', '"x"'), "command.run: expected a placeholder {x}, got none"),
    (edited('"{x}"', "3"), "command.run: expected a list of strings, got 3"),
    (edited('"{x}"', '"{x}\\u0000"'), "text without a null character"),
    (edited('run = ["prog", "{x}", "{y}"]', "shell = true\nrun = \"prog '{x}' {y}\""), "expected {x} outside quotes"),
    (edited("[variables.x]", '[value]\nfrom = "regexp"\n[variables.x]'), "value.from: expected one of last-number"),
    (edited("[variables.x]", '[value]\nfrom = "regex"\n[variables.x]'), "value.pattern: expected a string"),
    (edited("[variables.x]", '[value]\nfrom = "regex"\npattern = "("\n[variables.x]'), "expected a regular expression"),
    (edited("[variables.x]", '[value]\nfrom = "regex"\npattern = "a"\n[variables.x]'), "expected one group (...)"),
    (edited("[variables.x]", '[value]\nfield = "a"\n[variables.x]'), 'expected this key with from = "json" only'),
    (edited("[variables.x]", '[value]\nstream = "file"\n[variables.x]'), "give both or neither"),
    (edited("[variables.x]", '[value]\nfile = "{z}"\n[variables.x]'), "value.file: expected a placeholder out of"),
    (edited("ordinal", "orderly"), "line 7: variables.x.kind: expected one of binary, categorical, ordinal"),
    (edited("choices = [1, 2, 3]", ""), "variables.x.choices: expected a list, got nothing"),
    (edited("choices = [1, 2, 3]", "choices = [1, 1]"), "line 6: variable 'x': expected distinct choices"),
    (edited("choices = [1, 2, 3]", "choices = [[1], [2]]"), "variable 'x': expected"),
    (edited("choices = [1, 2, 3]", "choices = [1, inf]"), "expected choices that JSON can hold"),
    (edited("choices = [1, 2, 3]", 'choices = ["a\\u0000"]'), "choices without a null character"),
    (edited("choices = [1, 2, 3]", "choices = [1, 2]\nlow = 3"), "variables.x.low: expected a key out of kind"),
    (edited('kind = "binary"', 'kind = "binary"\nflags = ["-a"]'), "expected two spellings, off and on"),
    (edited('kind = "binary"', 'kind = "binary"\nflag = "-b"\nflags = ["-a", "-b"]'), "expected flag or flags"),
    (edited('kind = "binary"', 'kind = "float"\nlow = 0'), "variables.y.high: expected a number, got nothing"),
    (edited('kind = "binary"', 'kind = "float"\nlow = 0\nhigh = 1\nlog = true'), "expected low > 0 with log=True"),
    (edited('kind = "binary"', 'kind = "categorical"\nchoices = ["a", "b"]\ngraph = [["a", "c"]]'), "got 'c'"),
    (edited('kind = "binary"', 'kind = "categorical"\nchoices = ["a", "b"]\ngraph = "ring"'), "as graph, got 'ring'"),
    (edited("[variables.y]", "[variables.trial]"), "{trial} is the number of the evaluation; rename the variable"),
    (edited("[variables.y]", '[variables."y-z"]'), "expected a name of letters, digits and _"),
    (SMALL + "[[start]]\nx = 1\n", "start number 1: params: expected the names 'x', 'y', got 'y' missing"),
    (SMALL + "[[start]]\nx = 9\ny = true\n", "start number 1: variable 'x': expected one of 1, 2, 3, got 9"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "said"), WRONG, ids=range(len(WRONG)))
def test_what_is_wrong_is_named_in_one_line(text: str, said: str) -> None:
    with pytest.raises(StudyError) as refused:
        read(text)
    message = str(refused.value)
    assert said in message
    assert message.startswith("study.toml")
    assert len(message.splitlines()) == 1


def test_a_key_is_found_where_it_stands() -> None:
    text = 'a = 1\n[t]\nb = 2\n["q".r]\nc = 3\n[[start]]\nx = 1\n'
    assert [locate(text, path) for path in ("a", "t.b", "t", "t.z", "q.r.c", "start", "none")] == [
        1,
        3,
        2,
        2,
        5,
        6,
        None,
    ]


# ---------------------------------------------------------------- command lines

HOSTILE = [
    "",
    " ",
    "a b",
    "it's",
    '"',
    "$(touch x)",
    "`id`",
    "-rf",
    "--",
    "*",
    "\n",
    "\\",
    "a\tb",
    "é",
    "{x}",
    "%s",
    ";",
    "|&",
]


def files(run: str, **choices: Any) -> StudyFile:
    variables = "\n".join(
        f"[variables.{name}]\nkind = 'categorical'\nchoices = {toml([*values, '~'])}"
        for name, values in choices.items()
    )
    return read(f"[study]\nbudget = 1\n[command]\n{run}\n{variables}\n")


@pytest.mark.parametrize("value", HOSTILE)
def test_a_hostile_value_stays_within_its_argument(value: str) -> None:
    file = files('run = ["prog", "{x}", "--y={x}", "end"]', x=[value])
    got = arguments(file.command.run, Point({"x": value}, 0, 0, "/tmp"), file.flags)
    assert got == ["prog", value, f"--y={value}", "end"]


def point(**params: Any) -> Point:
    return Point(params, 12, 1, "/scratch/d")


def test_placeholders_are_filled() -> None:
    known = ["a", "b", "trial", "repeat", "tmp", "params"]
    line = [template(text, known) for text in ("{a}{b}", "{{a}}", "{trial}.{repeat}", "{tmp}/x", "{params}", "}}{{")]
    got = arguments(tuple(line), point(a=0.1, b=True), {})
    assert got == ["0.1true", "{a}", "12.1", "/scratch/d/x", '{"a": 0.1, "b": true}', "}{"]


def test_a_flag_that_is_off_leaves_no_argument_behind() -> None:
    line = tuple(template(text, ["f", "g"]) for text in ("cc", "{f}", "{g}", "X={f}", ""))
    flags = {"f": ("", "-funroll"), "g": ("-fno-g", "-fg")}
    assert arguments(line, point(f=False, g=False), flags) == ["cc", "-fno-g", "X=", ""]
    assert arguments(line, point(f=True, g=True), flags) == ["cc", "-funroll", "-fg", "X=-funroll", ""]


@given(st.lists(st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"])), min_size=1, max_size=3))
def test_a_shell_line_splits_into_the_same_words_again(values: list[str]) -> None:
    import shlex

    names = [f"v{i}" for i in range(len(values))]
    line = template("prog " + " ".join(f"--{name}={{{name}}}" for name in names), names)
    made = shell_line(line, Point(dict(zip(names, values, strict=True)), 0, 0, ""), {})
    assert shlex.split(made) == ["prog", *(f"--{name}={value}" for name, value in zip(names, values, strict=True))]


def test_a_flag_that_is_off_is_nothing_in_a_shell_line_too() -> None:
    line = template("cc {f} x.c", ["f"])
    assert shell_line(line, point(f=False), {"f": ("", "-fx y")}) == "cc  x.c"
    assert shell_line(line, point(f=True), {"f": ("", "-fx y")}) == "cc '-fx y' x.c"


def test_the_command_is_shown_as_it_can_be_pasted() -> None:
    file = files('run = ["prog", "{x}"]', x=["a b"])
    assert command_text(file.command, file.flags, {"x": "a b"}) == "prog 'a b'"


def test_a_program_that_does_not_exist_is_found_out_before_anything_runs(tmp_path: Path) -> None:
    file = loads(SMALL.replace("prog", "no-such-program-here"), tmp_path / "s.toml")
    with pytest.raises(StudyError, match=r"command\.run: expected a program that can be executed"):
        check_program(file)
    (tmp_path / "prog").write_text("#!/bin/sh\n")
    beside = loads(SMALL.replace("prog", "./prog"), tmp_path / "s.toml")
    with pytest.raises(StudyError, match="expected a program"):
        check_program(beside)
    (tmp_path / "prog").chmod(0o755)
    check_program(beside)
    elsewhere = loads(SMALL.replace("[command]", '[command]\ncwd = "no"'), tmp_path / "s.toml")
    with pytest.raises(StudyError, match=r"command\.cwd: expected a directory, got 'no'"):
        check_program(elsewhere)


# ---------------------------------------------------------------- changes to a file


def changed(old: str, new: str) -> list[str]:
    return [str(change) for change in changes(description(read(SMALL)), description(read(edited(old, new))))]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("budget = 5", 'budget = 9\ndeadline = "1h"\nworkers = 3\nseed = 1\ntimeout = 3'),
        ("budget = 5", 'budget = 5\npreset = "paper"\nstorage = "x.db"'),
        ("[command]", "[settings]\nsamples = 3\n[command]"),
        ("[command]", "# a remark\n[command]"),
    ],
)
def test_how_long_and_how_is_free_to_change(old: str, new: str) -> None:
    assert changed(old, new) == []


def test_of_a_long_value_the_part_that_changed_is_shown() -> None:
    old = ["gcc", *(f"-foption-{i}" for i in range(40))]
    new = [*old[:30], "-fno-other", *old[31:]]
    said = str(Change("command.run", old, new, True))
    assert said.startswith("command.run: was ...")
    assert '"-foption-30"' in said
    assert ", is ..." in said
    assert '"-fno-other"' in said
    assert len(said) < 160
    assert str(Change("budget", 1, [2], True)) == "budget: was 1, is [2]"


@pytest.mark.parametrize(
    ("old", "new", "what", "compatible"),
    [
        ("[1, 2, 3]", "[1, 2, 4]", "variables.x.choices", False),
        ("budget = 5", 'budget = 5\ndirection = "maximize"', "direction", False),
        ('kind = "binary"', 'kind = "integer"\nlow = 1\nhigh = 2', "variables.y", False),
        ("budget = 5", 'budget = 5\nconstraints = ["x < 3"]', "constraints", True),
        ('"{x}"', '"--x={x}"', "command.run", True),
        ("budget = 5", "budget = 5\nrepeats = 2", "value.repeats", True),
        ('kind = "binary"', 'kind = "binary"\nflag = "-y"', "flags.y", True),
        ("[command]", '[command]\nenv = { PASSWORD = "hunter2" }', "command.env", True),
    ],
)
def test_a_change_is_named_and_judged(old: str, new: str, what: str, compatible: bool) -> None:
    found = changes(description(read(SMALL)), description(read(edited(old, new))))
    assert found
    assert all(change.what.startswith(what) for change in found)
    assert all(change.compatible for change in found) == compatible
    assert "hunter2" not in str(found)
    with pytest.raises(StudyError, match="--extend" if compatible else "another name"):
        refuse_changes("s", found, extend=False)
    if compatible:
        refuse_changes("s", found, extend=True)
    else:
        with pytest.raises(StudyError, match=what):
            refuse_changes("s", found, extend=True)


def test_ranges_may_be_widened() -> None:
    number = SMALL.replace('kind = "binary"', 'kind = "integer"\nlow = 1\nhigh = 5')
    wider = number.replace("high = 5", "high = 9")
    (change,) = changes(description(read(number)), description(read(wider)))
    assert (change.what, change.old, change.new, change.compatible) == ("variables.y.high", 5, 9, True)


def test_a_description_is_json_and_leads_back_to_the_space() -> None:
    import json

    file = read(FULL)
    held = json.loads(json.dumps(description(file)))
    again = read_description("everything", held)
    assert again.variables.space == file.space
    assert again.variables.constraints == file.variables.constraints
    assert command_text(again.command, again.variables.flags, file.starts[0]) == command_text(
        file.command, file.flags, file.starts[0]
    )
    assert description(file) == held


@pytest.mark.parametrize("held", [None, 3, {}, {"version": 0}, {"version": 1}, {"version": 1, "constraints": ["x"]}])
def test_a_damaged_description_is_refused(held: Any) -> None:
    with pytest.raises(StudyError, match="study 's': expected"):
        read_description("s", held)


# ---------------------------------------------------------------- drafts and texts


def test_the_example_and_any_draft_can_be_read_back() -> None:
    file = loads(text(EXAMPLE), HERE)
    assert file.space.names == ("size", "level", "cache", "mode")
    assert (file.plan.budget, file.plan.timeout) == (40, 10.0)
    made = Draft(
        run=("p q", "--a={a}", "{b}", "{c}{d}{e}", 'x"\\\x7f'),
        variables=(
            variable("binary", "b=-f x"),
            variable("categorical", "a=gcc,clang"),
            variable("ordinal", "c=1,2,4"),
            variable("integer", "d=1:64:log"),
            variable("float", "e=0.5:2"),
        ),
        constraints=("c < 4",),
        direction="maximize",
        value="wall-time",
    )
    again = loads(text(made), HERE)
    assert [part.text for part in again.command.run] == list(made.run)
    assert again.space.variables["d"] == carbo.Integer(1, 64, log=True)
    assert again.flags == {"b": ("", "-f x")}
    assert again.variables.constraints == ("c < 4",)
    assert (again.direction, again.value.reader) == ("maximize", "wall-time")


def test_the_study_files_of_the_documents_are_right() -> None:
    document = (Path(__file__).parents[2] / "docs" / "tune.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```toml\n(.*?)```", document, re.DOTALL)
    assert blocks
    for block in blocks:
        read(block)
    table = document[document.index("| `[study]` |") :]
    assert all(f"`{key}`" in table for key in STUDY_KEYS)


@pytest.mark.parametrize(
    ("kind", "given"), [("ordinal", "x"), ("integer", "x=3"), ("float", "x=a:b"), ("float", "x=1:2:lin")]
)
def test_a_variable_in_another_form_is_refused(kind: str, given: str) -> None:
    with pytest.raises(StudyError, match=f"{kind}: expected a form like"):
        variable(kind, given)


@pytest.mark.parametrize(
    ("given", "seconds"),
    [
        (90, 90.0), (1.5, 1.5), ("90", 90.0), ("90s", 90.0), ("1h30m", 5400.0), ("500ms", 0.5), ("2 min", 120.0),
        ("1d", 86400.0), ("1h 5s", 3605.0), ("", None), ("soon", None), ("-3s", None), (0, None), (True, None),
        ("3x", None), ("1h30", None), (float("nan"), None), (float("inf"), None), (None, None),
    ],
)  # fmt: skip
def test_durations(given: Any, seconds: float | None) -> None:
    assert duration(given) == seconds


def test_times_and_settings_are_written_for_people() -> None:
    assert [clock(s) for s in (0.004, 1.5, 12.4, 65, 3700)] == ["0.004 s", "1.5 s", "12 s", "1 min 05 s", "1 h 01 min"]
    numbers = (33_860_474.0, -0.0, 1 / 3, 1e-7, 12_345_678.9, 1e300, None)
    assert [number(v) for v in numbers] == ["33860474", "0", "0.333333", "1e-07", "1.23457e+07", "1e+300", "-"]
    assert (
        settings({"a": True, "b": "x y", "c": "", "d": "\x1b[2J", "e": 0.5}) == r"a=true b='x y' c='' d='\x1b[2J' e=0.5"
    )
