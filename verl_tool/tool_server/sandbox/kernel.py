"""The few system calls that Python does not offer."""

import ctypes
import os

PR_SET_PDEATHSIG = 1
PR_SET_DUMPABLE = 4
PR_SET_KEEPCAPS = 8
PR_SET_CHILD_SUBREAPER = 36
PR_SET_NO_NEW_PRIVS = 38
PR_CAP_AMBIENT = 47
PR_CAP_AMBIENT_RAISE = 2

CAP_CHOWN, CAP_DAC_READ_SEARCH, CAP_SETGID, CAP_SETUID = 0, 2, 6, 7

_libc = ctypes.CDLL(None, use_errno=True)


def prctl(option: int, first: int, second: int = 0) -> None:
    if _libc.prctl(option, ctypes.c_ulong(first), ctypes.c_ulong(second), ctypes.c_ulong(0), ctypes.c_ulong(0)) != 0:
        error = ctypes.get_errno()
        raise OSError(error, f"prctl({option}): {os.strerror(error)}")


def keep_only_capability(capability: int) -> None:
    """Gives up every capability but this one, which children that are executed keep."""
    bit = 1 << capability
    header = (ctypes.c_uint32 * 2)(0x20080522, 0)
    data = (ctypes.c_uint32 * 6)(bit, bit, bit, 0, 0, 0)
    if _libc.capset(header, data) != 0:
        error = ctypes.get_errno()
        raise OSError(error, f"capset: {os.strerror(error)}")
    prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, capability)


def drop_all_capabilities() -> None:
    header, data = (ctypes.c_uint32 * 2)(0x20080522, 0), (ctypes.c_uint32 * 6)()
    if _libc.capset(header, data) != 0:
        error = ctypes.get_errno()
        raise OSError(error, f"capset: {os.strerror(error)}")


def has_capabilities(*capabilities: int) -> bool:
    with open("/proc/self/status") as file:
        held = next(int(line.split()[1], 16) for line in file if line.startswith("CapEff:"))
    return all(held >> capability & 1 for capability in capabilities)
