"""Commands: what reaches them, what is read from them, and how they and all that they started come to an end."""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from carbo.tune import command, processes
from carbo.tune.command import KEPT, Job, Output, Runner
from carbo.tune.errors import EvaluationFailed, Interrupted
from carbo.tune.evaluate import Evaluated, Evaluator
from carbo.tune.output_value import finite, json_field, last_number, pattern_number
from carbo.tune.processes import MARK, Owner, end_marked, find_marked
from carbo.tune.study_file import loads

needs_proc = pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="needs /proc, as Linux has it")


def python(code: str, *arguments: str, timeout: float | None = 600.0, **env: str) -> Job:
    return Job([sys.executable, "-c", code, *arguments], Path.cwd(), env, timeout)


def run(code: str, *arguments: str, **options: Any) -> Output:
    return Runner().run(python(code, *arguments, **options))


def until(condition: Callable[[], bool], seconds: float = 300.0) -> None:
    """Wait for something that can be observed; fail when it does not come."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.01)


def alive(pid: int) -> bool:
    return bool(processes._started(pid))


# ---------------------------------------------------------------- what reaches the command

HOSTILE = ["", "a b", "it's", '"', "$(touch x)", "`id`", "-rf", "--", "*", "\n", "\\", "é", "{x}", "; exit 1", "&", "~"]


def test_hostile_values_reach_the_command_as_one_argument_each(tmp_path: Path) -> None:
    job = Job([sys.executable, "-c", "import json, sys; print(json.dumps(sys.argv[1:]))", *HOSTILE], tmp_path)
    assert json.loads(Runner().run(job).stdout) == HOSTILE
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("shell", [False, True])
def test_hostile_choices_of_a_study_file_reach_the_command_too(tmp_path: Path, shell: bool) -> None:
    script = tmp_path / "show.py"
    script.write_text("import json, os, sys\nprint(json.dumps([sys.argv[1:], os.environ['X']]))\nprint(1)\n")
    line = f"{sys.executable} {script} {{x}} --x={{x}}"
    run_key = f"shell = true\nrun = {json.dumps(line)}" if shell else f"run = {json.dumps(line.split())}"
    choices = json.dumps(HOSTILE, ensure_ascii=False)
    file = loads(
        f"[study]\nbudget = 1\n[command]\n{run_key}\nenv = {{ X = '{{x}}' }}\n"
        f"[variables.x]\nkind = 'categorical'\nchoices = {choices}\n",
        tmp_path / "study.toml",
    )
    outputs: list[Output] = []

    class Recording(Runner):
        def run(self, job: Job) -> Output:
            outputs.append(super().run(job))
            return outputs[-1]

    evaluate = Evaluator(file, Recording())
    for value in HOSTILE:
        evaluate({"x": value}, 0, "mark")
        assert json.loads(outputs[-1].stdout.splitlines()[0]) == [[value, f"--x={value}"], value]
    assert [path.name for path in tmp_path.iterdir()] == ["show.py"]


def test_a_command_gets_its_environment_its_directory_and_no_input(tmp_path: Path) -> None:
    code = "import os, sys; print(os.environ['X'], os.getcwd(), repr(sys.stdin.read()))"
    job = Job([sys.executable, "-c", code], tmp_path, {"X": "a  b"}, 60.0)
    assert Runner().run(job).stdout == f"a  b {tmp_path} ''\n"


# ---------------------------------------------------------------- how it ends


def test_what_a_command_prints_is_kept_and_timed() -> None:
    output = run("import sys; print('out'); print('err', file=sys.stderr)")
    assert (output.stdout, output.stderr) == ("out\n", "err\n")
    assert output.seconds > 0


def test_output_without_end_is_bounded_and_its_end_is_kept() -> None:
    lines = 3 * KEPT // 10
    output = run(f"import sys\nfor i in range({lines}): print(f'{{i:09d}}')\nprint('value 42')")
    assert len(output.stdout) <= KEPT + command.CHUNK
    kept = output.stdout.splitlines()
    assert kept[-1] == "value 42"
    assert kept[:-1] == [f"{i:09d}" for i in range(lines - len(kept) + 1, lines)]


def test_a_failure_tells_its_exit_code_and_last_words() -> None:
    with pytest.raises(EvaluationFailed, match=r"^exit code 3; stderr ends: a \| b\x1b?") as failed:
        run("import sys; sys.stderr.write('x\\n' * 0 + 'a\\nb \\x1b[2J\\n'); sys.exit(3)")
    assert "\x1b" not in str(failed.value)


@pytest.mark.skipif(os.name != "posix", reason="signals")
def test_a_command_that_is_killed_says_by_what() -> None:
    with pytest.raises(EvaluationFailed, match="killed by SIGKILL"):
        run("import os, signal; os.kill(os.getpid(), signal.SIGKILL)")


def test_a_program_that_cannot_be_started_is_a_failure(tmp_path: Path) -> None:
    with pytest.raises(EvaluationFailed, match="could not be started"):
        Runner().run(Job(["no-such-program-here"], tmp_path))
    with pytest.raises(EvaluationFailed, match="could not be started"):
        Runner().run(Job([sys.executable], tmp_path / "no-such-directory"))


TREE = """
import os, subprocess, sys, time
folder, kind = sys.argv[1:]
child = "import os, sys, time; open(sys.argv[1], 'w').write(str(os.getpid())); time.sleep(600)"
ignore = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); "
for name, options in {
    "same": {},
    "stubborn": {},
    "group": {"process_group": 0},
    "session": {"start_new_session": True},
}.items():
    code = (ignore if name == "stubborn" else "") + child
    subprocess.Popen([sys.executable, "-c", code, os.path.join(folder, name)], **options)
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:  # a daemon, adopted by init
        open(os.path.join(folder, "daemon"), "w").write(str(os.getpid()))
        time.sleep(600)
    os._exit(0)
open(os.path.join(folder, "leader"), "w").write(str(os.getpid()))
while kind == "hang":
    time.sleep(600)
"""
"""A command that starts processes of every kind and, asked to hang, never ends."""
NAMES = ("same", "stubborn", "group", "session", "daemon", "leader")


def family(folder: Path) -> dict[str, int]:
    """The processes that TREE has started, once all have said so."""
    until(lambda: all((folder / name).exists() and (folder / name).read_text() for name in NAMES))
    return {name: int((folder / name).read_text()) for name in NAMES}


def started(folder: Path, timeout: float | None = None) -> tuple[Job, Runner, threading.Thread, list[BaseException]]:
    """TREE under way in a thread."""
    runner, errors = Runner(), list[BaseException]()
    job = python(TREE, str(folder), "hang", timeout=timeout)

    def work() -> None:
        try:
            runner.run(job)
        except BaseException as error:  # noqa: BLE001
            errors.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    return job, runner, thread, errors


@needs_proc
def test_a_time_out_kills_the_whole_process_tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "POLITE", 0.2)
    # The time-out is asked for only once the whole family is up, so that no machine is too slow for this test.
    begun = threading.Event()
    listen = command._Run._listen
    monkeypatch.setattr(command._Run, "_listen", lambda self, _: (begun.wait(60), listen(self, 0.05))[1])
    job, _, thread, errors = started(tmp_path, timeout=0.05)
    pids = family(tmp_path)
    assert set(find_marked(job.mark)) == set(pids.values())
    begun.set()
    thread.join(60)
    assert [str(error) for error in errors] == ["timed out after 0.05 s"]
    until(lambda: not any(map(alive, pids.values())))


@needs_proc
def test_stopping_a_runner_kills_what_runs_and_starts_nothing_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command, "POLITE", 0.2)
    _, runner, thread, errors = started(tmp_path)
    pids = family(tmp_path)
    runner.stop()
    thread.join(60)
    assert isinstance(errors[0], Interrupted)
    until(lambda: not any(map(alive, pids.values())))
    with pytest.raises(Interrupted):
        runner.run(python("print(1)"))


@needs_proc
def test_a_background_process_that_keeps_the_output_open_holds_nobody_up(tmp_path: Path) -> None:
    job = python(TREE, str(tmp_path), "end")
    try:
        output = Runner().run(job)  # TREE's leader has ended; its children hold stdout and stderr
        assert output.seconds < 600
        pids = family(tmp_path)
        assert all(alive(pid) for name, pid in pids.items() if name != "leader")
    finally:
        assert end_marked(job.mark) >= 1
    assert not find_marked(job.mark)


@needs_proc
def test_a_polite_end_comes_first(tmp_path: Path) -> None:
    code = (
        "import signal, sys, time\n"
        "def end(*_): open(sys.argv[1] + '/cleaned', 'w').close(); sys.exit(0)\n"
        "signal.signal(signal.SIGTERM, end)\nopen(sys.argv[1] + '/ready', 'w').close()\n"
        "while True: time.sleep(600)\n"
    )
    runner, errors = Runner(), list[BaseException]()

    def work() -> None:
        try:
            runner.run(python(code, str(tmp_path), timeout=None))
        except BaseException as error:  # noqa: BLE001
            errors.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    until((tmp_path / "ready").exists)
    runner.stop()
    thread.join(60)
    assert (tmp_path / "cleaned").exists()
    assert isinstance(errors[0], Interrupted)


def test_no_descriptor_is_left_open() -> None:
    folder = Path("/proc/self/fd")
    if not folder.exists():
        pytest.skip("needs /proc, as Linux has it")
    run("print(1)")
    before = len(list(folder.iterdir()))
    for _ in range(5):
        run("print(1)")
        with pytest.raises(EvaluationFailed):
            Runner().run(Job(["no-such-program-here"], Path.cwd()))
    assert len(list(folder.iterdir())) == before


@needs_proc
def test_a_process_knows_itself_and_its_dead() -> None:
    me = Owner.this()
    assert not me.is_dead()
    assert me._replace(started="1").is_dead()  # the number was given to another process since
    assert not me._replace(machine="another", pid=1 << 22).is_dead()  # nobody here can tell
    reader, writer = os.pipe()
    pid = os.posix_spawn(
        sys.executable, [sys.executable, "-c", "input()"], {}, file_actions=[(os.POSIX_SPAWN_DUP2, reader, 0)]
    )
    child = Owner(me.machine, pid, processes._started(pid))
    assert not child.is_dead()
    os.kill(pid, signal.SIGKILL)
    until(child.is_dead)  # also while it is a zombie that nobody has waited for
    os.waitpid(pid, 0)
    os.close(reader)
    os.close(writer)
    assert child.is_dead()


def test_the_mark_is_in_the_environment_of_a_run() -> None:
    job = python(f"import os; print(os.environ[{MARK!r}])")
    assert Runner().run(job).stdout.strip() == job.mark


# ---------------------------------------------------------------- reading values


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("3", 3.0), ("took 3.5s", 3.5), ("a 1\nb -2e-3\n\n", -2e-3), ("x=+.5", 0.5), ("p99: 12ms", 12.0), ("7.", 7.0),
        ("cost: 1E+4 (run2)", 1e4), ("12 p99", 12.0), ("time 1.5 v1.2.3", 1.5), ("1;2;3", 3.0), ("a,b\n0.5,0.25", 0.25),
        ("1, 234", 234.0), ("1,2,3", 3.0), ("100,5e-05", 5e-5), ("7,1E-7", 1e-7), ("a=0.5,b=2", 2.0),
    ],
)  # fmt: skip
def test_the_last_number_is_read(text: str, value: float) -> None:
    assert last_number(text) == value


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "expected a number in the output, got nothing"),
        ("no value\nat all", "expected a number in the output, got 'at all'"),
        ("p99", "expected a number"),
        ("1,234,567 instructions", "which may be read in several ways"),
        ("epoch 3 took 1,234", "which may be read in several ways"),
        ("took 1,5 s", "got '1,5', which may be read in several ways"),
        ("took 1,5.", "got '1,5', which may be read in several ways"),
        ("took 1,5, done", "got '1,5', which may be read in several ways"),
        ("1.234,5", "got '1.234,5', which may be read in several ways"),
        ("1_000", "got '1_000', which may be read in several ways"),
        ("at 0x1F", "got '0x1F', which may be read in several ways"),
    ],
)
def test_output_without_a_plain_number_is_a_failure(text: str, said: str) -> None:
    with pytest.raises(EvaluationFailed, match=said):
        last_number(text)


@pytest.mark.parametrize("text", ["step 3 loss nan", "NaN", "-inf", "Infinity", "1e999"])
def test_values_that_are_not_finite_are_failures(text: str) -> None:
    with pytest.raises(EvaluationFailed, match="expected a finite value"):
        finite(last_number(text))


def test_a_pattern_reads_its_last_match() -> None:
    assert pattern_number("t: 1\nt: 2\nother 3", r"t: (\d+)") == 2.0
    assert pattern_number("x 5\ny 7\n", r"^y (.*)$") == 7.0
    with pytest.raises(EvaluationFailed, match="expected output that matches"):
        pattern_number("nothing", r"t: (\d+)")
    with pytest.raises(EvaluationFailed, match="expected a number as the group"):
        pattern_number("t: fast", r"t: (\w+)")


@pytest.mark.parametrize(
    ("text", "path", "value"),
    [
        ('{"a": {"b": [1, 2.5]}}', "a.b.1", 2.5),
        ('log\n{"a": 1}\n{"a": "2"}\nbye', "a", 2.0),
        ('{\n "a": [\n 3]\n}', "a.-1", 3.0),
        ("[4]", "0", 4.0),
    ],
)
def test_a_field_of_json_is_read(text: str, path: str, value: float) -> None:
    assert json_field(text, path) == value


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("", "a"),
        ("{", "a"),
        ('{"a": 1}', "b"),
        ('{"a": true}', "a"),
        ('{"a": {}}', "a"),
        ("[1]", "1"),
        ("[" * 9999, "0"),
    ],
)
def test_json_without_the_field_is_a_failure(text: str, path: str) -> None:
    with pytest.raises(EvaluationFailed, match="expected"):
        json_field(text, path)


# ---------------------------------------------------------------- whole evaluations


def evaluated(tmp_path: Path, code: str, study: str = "", value: str = "") -> Evaluated:
    (tmp_path / "prog.py").write_text(code)
    file = loads(
        f"[study]\nbudget = 1\n{study}\n"
        f"[command]\nrun = [{sys.executable!r}, 'prog.py', '{{x}}', '{{tmp}}', '{{repeat}}']\n"
        f"[value]\n{value}\n[variables.x]\nkind = 'ordinal'\nchoices = [1, 2]\n",
        tmp_path / "study.toml",
    )
    return Evaluator(file, Runner())({"x": 2}, 7, "mark")


def test_repeats_are_run_and_combined(tmp_path: Path) -> None:
    code = "import sys; print([3, 10, 5][int(sys.argv[3])])"
    for aggregate, value in {"mean": 6.0, "median": 5.0, "min": 3.0, "max": 10.0}.items():
        result = evaluated(tmp_path, code, f"repeats = 3\naggregate = '{aggregate}'")
        assert (result.value, result.values) == (value, [3.0, 10.0, 5.0])


def test_a_value_may_come_from_stderr_or_wall_time(tmp_path: Path) -> None:
    code = "import sys; print(1); print('took 2', file=sys.stderr)"
    assert evaluated(tmp_path, code, value="stream = 'stderr'").value == 2.0
    result = evaluated(tmp_path, code, value="from = 'wall-time'")
    assert result.value == result.seconds > 0


def test_a_value_may_come_from_a_file_that_the_run_writes(tmp_path: Path) -> None:
    code = "import sys; open(sys.argv[2] + '/out', 'w').write('9 4')"
    assert evaluated(tmp_path, code, value="file = '{tmp}/out'").value == 4.0
    with pytest.raises(EvaluationFailed, match="expected the command to write"):
        evaluated(tmp_path, "print(3)", value="file = '{tmp}/out'")


def test_a_file_left_by_an_earlier_run_is_not_taken_for_the_value(tmp_path: Path) -> None:
    (tmp_path / "old").write_text("5")
    with pytest.raises(EvaluationFailed, match="got no change to it"):
        evaluated(tmp_path, "print(3)", value="file = 'old'")


def test_the_directory_of_a_run_is_its_own_and_removed(tmp_path: Path) -> None:
    code = "import os, sys; print(sys.argv[2]); open(sys.argv[2] + '/x', 'x'); print(len(os.listdir(sys.argv[2])))"
    assert evaluated(tmp_path, code, "repeats = 2").values == [1.0, 1.0]
    assert not [path for path in tmp_path.iterdir() if path.name.startswith("carbo-")]


def test_one_bad_repeat_makes_the_evaluation_a_failure(tmp_path: Path) -> None:
    with pytest.raises(EvaluationFailed, match="exit code 1"):
        evaluated(tmp_path, "import sys; print(1); sys.exit(int(sys.argv[3]))", "repeats = 2")
