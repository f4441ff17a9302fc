"""Numbers of the system calls that the filter knows, for each architecture. Owns the list of those that no
build ever needs; `filter` judges the others by what they ask for."""

from typing import Final

NEVER: Final = {
    "x86_64": {
        "ptrace": 101, "process_vm_readv": 310, "process_vm_writev": 311, "pidfd_getfd": 438, "kcmp": 312,
        "unshare": 272, "setns": 308, "mount": 165, "umount2": 166, "pivot_root": 155, "chroot": 161,
        "open_tree": 428, "move_mount": 429, "fsopen": 430, "fsconfig": 431, "fsmount": 432, "mount_setattr": 442,
        "bpf": 321, "perf_event_open": 298, "userfaultfd": 323, "open_by_handle_at": 304,
        "add_key": 248, "request_key": 249, "keyctl": 250, "syslog": 103,
        "shmget": 29, "semget": 64, "msgget": 68, "mq_open": 240, "memfd_secret": 447,
    },
    "aarch64": {
        "ptrace": 117, "process_vm_readv": 270, "process_vm_writev": 271, "pidfd_getfd": 438, "kcmp": 272,
        "unshare": 97, "setns": 268, "mount": 40, "umount2": 39, "pivot_root": 41, "chroot": 51,
        "open_tree": 428, "move_mount": 429, "fsopen": 430, "fsconfig": 431, "fsmount": 432, "mount_setattr": 442,
        "bpf": 280, "perf_event_open": 241, "userfaultfd": 282, "open_by_handle_at": 265,
        "add_key": 217, "request_key": 218, "keyctl": 219, "syslog": 116,
        "shmget": 194, "semget": 190, "msgget": 186, "mq_open": 180, "memfd_secret": 447,
    },
}  # fmt: skip
# A program that has another way takes it then. What clone3 wishes is behind a pointer, which a filter cannot follow.
ABSENT: Final = {"io_uring_setup": 425, "io_uring_enter": 426, "io_uring_register": 427, "clone3": 435}
JUDGED: Final = {
    "x86_64": {
        "clone": 56, "prctl": 157, "prlimit64": 302,
        "setpriority": 141, "ioprio_set": 251,
        "sched_setaffinity": 203, "sched_setscheduler": 144, "sched_setparam": 142, "sched_setattr": 314,
        "sendto": 44, "sendmsg": 46, "sendmmsg": 307, "socket": 41, "socketpair": 53, "bind": 49,
        "listen": 50,
    },
    "aarch64": {
        "clone": 220, "prctl": 167, "prlimit64": 261,
        "setpriority": 140, "ioprio_set": 30,
        "sched_setaffinity": 122, "sched_setscheduler": 119, "sched_setparam": 118, "sched_setattr": 274,
        "sendto": 206, "sendmsg": 211, "sendmmsg": 269, "socket": 198, "socketpair": 199, "bind": 200,
        "listen": 201,
    },
}  # fmt: skip
ARCHITECTURE: Final = {"x86_64": 0xC000_003E, "aarch64": 0xC000_00B7}
