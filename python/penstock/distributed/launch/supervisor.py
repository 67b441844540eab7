"""Runs the roles of a job to their end.

Each role is the leader of its own process group and dies with the launcher (the kernel's parent-death signal); the
keeper
(keeper.py) ends the groups if the launcher is killed, so that helpers of a role do not outlive it either. The first
role
that fails decides the outcome: the others get a grace period to say what they noticed, then they are ended.
"""

import ctypes
import os
import selectors
import signal
import subprocess
import sys
import time

EXIT_ROLE_FAILED = 1
EXIT_INTERRUPTED = 130
LAST_LINES = 20
TERM_WAIT_S = 3.0
POLL_S = 0.1
_PR_SET_PDEATHSIG = 1


class _Process:
    def __init__(self, role, log_path, popen):
        self.role = role
        self.log_path = log_path
        self.popen = popen
        self.started = time.monotonic()
        self.ended = None
        self.outcome = None  # how it ended, in words
        self.failed = False


def _die_with_parent(parent):
    """Runs in the child before exec: SIGKILL when the launcher dies, or at once if it already has."""
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os.kill(os.getpid(), signal.SIGKILL)


def _child_environment(role):
    environment = {k: v for k, v in os.environ.items() if k.lower() not in {"http_proxy", "https_proxy"}}
    environment.update(role.environment)
    return environment


def _start(role, job):
    log_path = os.path.join(job.log_dir, role.log_name)
    parent = os.getpid()
    with open(log_path, "wb") as log:
        popen = subprocess.Popen(
            job.command, env=_child_environment(role), stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT,
            start_new_session=True, preexec_fn=lambda: _die_with_parent(parent))
    return _Process(role, log_path, popen)


def _describe_end(code):
    """(words, failed) for a return code of subprocess."""
    if code == 0:
        return "ended well", False
    if code < 0:
        try:
            return f"was killed by {signal.Signals(-code).name}", True
        except ValueError:
            return f"was killed by signal {-code}", True
    return f"exited with code {code}", True


def _last_lines(path, count):
    with open(path, "rb") as log:
        log.seek(0, os.SEEK_END)
        log.seek(max(0, log.tell() - 64 * 1024))
        return log.read().decode(errors="replace").splitlines()[-count:]


class _Echo:
    """Repeats on the terminal what a role has written to its log since the last call."""

    def __init__(self, path):
        self._log = open(path, "rb")  # closed with the process

    def pump(self):
        text = self._log.read()
        if text:
            sys.stdout.write(text.decode(errors="replace"))
            sys.stdout.flush()


class _Supervisor:
    def __init__(self, job, grace_s, echo):
        self._job = job
        self._grace_s = grace_s
        self._echo_wanted = echo
        self._echo = None
        self._processes = []
        self._first_failure = None
        self._deadline = None  # by when the rest must have ended
        self._stop_signal = None
        self._selector = selectors.DefaultSelector()
        self._keeper = None

    def run(self):
        os.makedirs(self._job.log_dir, exist_ok=True)
        previous = {s: signal.signal(s, self._on_signal) for s in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
        try:
            self._keeper = subprocess.Popen([sys.executable, "-m", "penstock.distributed.launch.keeper"],
                                            stdin=subprocess.PIPE, start_new_session=True)
            self._start_all()
            self._watch()
        finally:
            self._end_all()
            self._release_keeper()
            for number, handler in previous.items():
                signal.signal(number, handler)
        if self._echo is not None:
            self._echo.pump()
        return self._report()

    def _on_signal(self, number, _frame):
        self._stop_signal = self._stop_signal or number

    def _start_all(self):
        for role in self._job.roles:
            process = _start(role, self._job)
            self._processes.append(process)
            self._keeper.stdin.write(f"{process.popen.pid}\n".encode())
            self._keeper.stdin.flush()
            if self._echo_wanted and role.kind == "trainer" and role.index == 0:
                self._echo = _Echo(process.log_path)
            descriptor = os.pidfd_open(process.popen.pid)
            self._selector.register(descriptor, selectors.EVENT_READ, process)

    def _alive(self):
        return [process for process in self._processes if process.outcome is None]

    def _watch(self):
        while self._alive() and self._stop_signal is None:
            if self._deadline is not None and time.monotonic() > self._deadline:
                return
            for key, _ in self._selector.select(POLL_S):
                self._selector.unregister(key.fileobj)
                os.close(key.fd)
                self._note_end(key.data)
            if self._echo is not None:
                self._echo.pump()

    def _note_end(self, process):
        process.outcome, process.failed = _describe_end(process.popen.wait())
        process.ended = time.monotonic()
        if process.failed and self._first_failure is None:
            self._first_failure = process
            self._deadline = time.monotonic() + self._grace_s
        trainers_left = any(p.role.kind == "trainer" for p in self._alive())
        if not trainers_left and self._deadline is None:
            # Servers end by themselves once every trainer has completed; one that does not is ended, and said.
            self._deadline = time.monotonic() + self._grace_s

    def _end_all(self):
        for number, patience in ((signal.SIGTERM, TERM_WAIT_S), (signal.SIGKILL, TERM_WAIT_S)):
            for process in self._processes:
                try:  # the whole group: helpers of a role that has ended too
                    os.killpg(process.popen.pid, number)
                except (ProcessLookupError, PermissionError):
                    pass
            deadline = time.monotonic() + patience
            for process in self._alive():
                try:
                    code = process.popen.wait(timeout=max(0.0, deadline - time.monotonic()))
                except subprocess.TimeoutExpired:
                    continue
                process.outcome = f"was ended by the launcher ({_describe_end(code)[0]})"
                process.failed = True

    def _release_keeper(self):
        if self._keeper is None:
            return
        try:
            self._keeper.stdin.write(b"done\n")
            self._keeper.stdin.close()
        except BrokenPipeError:
            pass
        self._keeper.wait()

    def _report(self):
        if self._stop_signal is not None:
            print(f"launch: stopped by {signal.Signals(self._stop_signal).name}; all roles were ended", file=sys.stderr)
            return EXIT_INTERRUPTED if self._stop_signal == signal.SIGINT else 128 + self._stop_signal
        failed = [process for process in self._processes if process.failed]
        if not failed:
            return 0
        first = self._first_failure or failed[0]
        after = (first.ended or time.monotonic()) - first.started
        print(f"error: launch: {first.role.name} (pid {first.popen.pid}) {first.outcome}, {after:.1f} s after it was "
              f"started   [E-launch-role]", file=sys.stderr)
        print(f"  last lines of {first.log_path}:", file=sys.stderr)
        for line in _last_lines(first.log_path, LAST_LINES):
            print(f"    {line}", file=sys.stderr)
        for process in self._processes:
            if process is not first:
                print(f"  {process.role.name} {process.outcome}; its log is {process.log_path}", file=sys.stderr)
        return EXIT_ROLE_FAILED


def run_job(job, grace_s=15.0, echo=True):
    """Starts every role of `job` and waits for the end of all. Returns the launcher's exit code.

    grace_s: seconds that the other roles get after the first failure, and pservers after the last trainer has ended.
    echo: whether trainer 0's output is repeated on standard output.
    """
    return _Supervisor(job, grace_s, echo).run()
