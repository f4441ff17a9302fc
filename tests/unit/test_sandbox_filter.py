"""The filter's program, run instruction by instruction as the kernel would."""

import errno
import socket
import struct

import pytest

from services.worker.sandbox import calls, filter  # noqa: A004 - says what it is

ARCHITECTURE = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
NETWORKS: tuple[filter.Network, ...] = ("own", "shared", "none")
MPTCP, NETLINK_AUDIT = 262, 9


def answer(
    machine: str, call: str | int, *arguments: int, network: filter.Network = "own", foreign: bool = False
) -> int:
    known = calls.NEVER[machine] | calls.JUDGED[machine] | calls.ABSENT
    number = known[call] if isinstance(call, str) else call
    padded = (*arguments, 0, 0, 0, 0, 0, 0)[:6]
    data = struct.pack("=IIQ6Q", number, 0x40000003 if foreign else ARCHITECTURE[machine], 0, *padded)
    steps, at, value = filter.program(machine, network=network), 0, 0
    while True:
        step = steps[at]
        at += 1
        match step.code:
            case filter._LOAD:
                (value,) = struct.unpack_from("=I", data, step.value)
            case filter._AND:
                value &= step.value
            case filter._RETURN:
                return step.value
            case filter._EQUAL:
                at += step.then if value == step.value else step.otherwise
            case filter._AT_LEAST:
                at += step.then if value >= step.value else step.otherwise
            case filter._ANY_BIT:
                at += step.then if value & step.value else step.otherwise
            case _:
                raise AssertionError(step)


def refused(with_error: int) -> int:
    return filter.REFUSE | with_error


machines = pytest.mark.parametrize("machine", ARCHITECTURE)


@machines
@pytest.mark.parametrize("call", ["ptrace", "process_vm_readv", "unshare", "setns", "mount", "bpf", "keyctl", "shmget"])
def test_what_a_build_never_needs_is_refused(machine: str, call: str) -> None:
    assert answer(machine, call) == refused(errno.EPERM)


@machines
def test_whoever_has_another_way_is_told_to_take_it(machine: str) -> None:
    assert answer(machine, "clone3") == refused(errno.ENOSYS)
    assert answer(machine, "io_uring_setup") == refused(errno.ENOSYS)


@machines
def test_any_other_call_is_allowed(machine: str) -> None:
    assert answer(machine, 0) == filter.ALLOW
    assert answer(machine, 400) == filter.ALLOW


@machines
def test_processes_and_threads_may_be_made_but_no_namespaces(machine: str) -> None:
    threads, new_user, new_time_bit = 0x003D0F00, 0x10000000, 0x80

    assert answer(machine, "clone", threads) == filter.ALLOW
    assert answer(machine, "clone", 17 | new_time_bit) == filter.ALLOW  # a part of the signal's number there
    assert answer(machine, "clone", threads | new_user) == refused(errno.EPERM)


@machines
def test_limits_may_be_set_on_oneself_alone(machine: str) -> None:
    assert answer(machine, "prlimit64", 0) == filter.ALLOW
    assert answer(machine, "prlimit64", 4711) == refused(errno.EPERM)


@machines
def test_no_process_may_hide_from_its_keeper(machine: str) -> None:
    assert answer(machine, "prctl", 15) == filter.ALLOW
    assert answer(machine, "prctl", 4) == refused(errno.EPERM)


@machines
@pytest.mark.parametrize("call", ["sched_setaffinity", "sched_setscheduler", "sched_setparam", "sched_setattr"])
def test_only_itself_is_scheduled_otherwise(machine: str, call: str) -> None:
    assert answer(machine, call, 0, 4711) == filter.ALLOW
    assert answer(machine, call, 4711) == refused(errno.EPERM)


@machines
@pytest.mark.parametrize(("call", "a_process"), [("setpriority", 0), ("ioprio_set", 1)])
def test_only_its_own_process_becomes_nicer(machine: str, call: str, a_process: int) -> None:
    assert answer(machine, call, a_process, 0, 19) == filter.ALLOW
    assert answer(machine, call, a_process, 4711, 19) == refused(errno.EPERM)
    assert answer(machine, call, a_process + 1, 0, 19) == refused(errno.EPERM)  # a group
    assert answer(machine, call, a_process + 2, 0, 19) == refused(errno.EPERM)  # a user


@machines
@pytest.mark.parametrize(("call", "flags_at"), [("sendto", 3), ("sendmsg", 2), ("sendmmsg", 3)])
def test_nobody_connects_by_sending(machine: str, call: str, flags_at: int) -> None:
    quietly, fast_open = 0x4000, 0x20000000

    assert answer(machine, call, *[fast_open] * flags_at, quietly) == filter.ALLOW
    assert answer(machine, call, *[0] * flags_at, quietly | fast_open) == refused(errno.EOPNOTSUPP)


@machines
@pytest.mark.parametrize(
    ("arguments", "allowed_in"),
    [
        ((socket.AF_UNIX, socket.SOCK_STREAM, 0), ["own"]),
        ((socket.AF_INET, socket.SOCK_STREAM | socket.SOCK_CLOEXEC, 0), ["own", "shared"]),
        ((socket.AF_INET6, socket.SOCK_STREAM, socket.IPPROTO_TCP), ["own", "shared"]),
        ((socket.AF_INET, socket.SOCK_DGRAM, socket.IPPROTO_UDP), ["own", "shared"]),
        ((socket.AF_INET, socket.SOCK_STREAM, MPTCP), []),
        ((socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP), []),
        ((socket.AF_INET, socket.SOCK_DGRAM, socket.IPPROTO_ICMP), []),
        ((socket.AF_INET, socket.SOCK_STREAM, 132), []),
        ((socket.AF_NETLINK, socket.SOCK_RAW, 0), ["own", "shared"]),
        ((socket.AF_NETLINK, socket.SOCK_RAW, NETLINK_AUDIT), []),
        ((socket.AF_PACKET, socket.SOCK_RAW, 0), []),
        ((40, socket.SOCK_STREAM, 0), []),
    ],
)
def test_sockets_are_plain_ones_and_local_ones_only_in_a_network_of_its_own(
    machine: str, arguments: tuple[int, ...], allowed_in: list[filter.Network]
) -> None:
    for network in NETWORKS:
        expected = filter.ALLOW if network in allowed_in else refused(errno.EACCES)
        assert answer(machine, "socket", *arguments, network=network) == expected


@machines
@pytest.mark.parametrize("network", NETWORKS)
def test_pairs_are_connected_for_good_where_names_are_the_machines(machine: str, network: filter.Network) -> None:
    of_datagrams = filter.ALLOW if network == "own" else refused(errno.EACCES)

    for connected in (socket.SOCK_STREAM, socket.SOCK_SEQPACKET | socket.SOCK_NONBLOCK):
        assert answer(machine, "socketpair", socket.AF_UNIX, connected, network=network) == filter.ALLOW
    for kind in (socket.SOCK_DGRAM, socket.SOCK_RAW):
        assert answer(machine, "socketpair", socket.AF_UNIX, kind, network=network) == of_datagrams


@machines
def test_it_is_a_server_only_in_a_network_of_its_own(machine: str) -> None:
    assert answer(machine, "listen", 3, network="own") == filter.ALLOW
    assert answer(machine, "listen", 3, network="shared") == refused(errno.EACCES)
    assert answer(machine, "bind", 3, network="shared") == filter.ALLOW  # who asks name servers does
    assert answer(machine, "bind", 3, network="none") == refused(errno.EACCES)


@machines
def test_calls_in_another_architectures_numbers_end_the_process(machine: str) -> None:
    assert answer(machine, 0, foreign=True) == filter.KILL


def test_the_second_set_of_numbers_does_not_exist() -> None:
    assert answer("x86_64", 0x40000000 | 101) == refused(errno.ENOSYS)
