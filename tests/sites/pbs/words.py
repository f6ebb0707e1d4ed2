"""What OpenPBS says: the texts and return codes of its commands, as recorded in tests/transcripts."""

from __future__ import annotations

from dataclasses import dataclass

SERVER = "pbshost"
VERSION = "23.06.06"

USAGE = """\
usage: qsub [-a date_time] [-A account_string] [-c interval]
\t[-C directive_prefix] [-e path] [-f ] [-h ] [-I [-X]] [-j oe|eo] [-J X-Y[:Z]]
\t[-k keep] [-l resource_list] [-m mail_options] [-M user_list]
\t[-N jobname] [-o path] [-p priority] [-P project] [-q queue] [-r y|n]
\t[-R o|e|oe] [-S path] [-u user_list] [-W otherattributes=value...]
\t[-v variable_list] [-V ] [-z] [script | -- command [arg1 ...]]
       qsub --version
"""


@dataclass
class Reply:
    """What a command prints and returns. ``delay_s`` passes before it prints; ``killed``: it dies by SIGKILL then."""

    stdout: str = ""
    stderr: str = ""
    returncode: int = 0
    delay_s: float = 0.0
    killed: bool = False
    send_stdin: bool = False


class Rejected(Exception):
    """A command that fails: its stderr and return code. PBS error numbers are 15000-odd; 8 bits of them survive."""

    def __init__(self, message: str, returncode: int):
        super().__init__(message)
        self.message = message
        self.returncode = returncode


def illegal_value(resource: str) -> Rejected:
    return Rejected(f"Illegal attribute or resource value {resource}".rstrip(), 166)


def unknown_job(job_id: str) -> Rejected:
    return Rejected(f"Unknown Job Id {job_id}", 153)


def server_down(command: str, stub: str) -> Reply:
    """What each command says when nothing listens on the server's port."""
    if command in ("qsub", "qstat", "qselect"):
        text = f"Connection refused\n{command}: cannot connect to server localhost (errno=15010)\n"
        return Reply(stub, text, 255) if command == "qstat" else Reply("", text, 162)
    return Reply("", "Connection refused\nCouldn't connect to cluster: localhost\n", 162)
