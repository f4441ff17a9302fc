"""What of the machine's files every command may read, and where names are found."""

from pathlib import Path
from typing import Final

PROGRAMS: Final = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/opt", "/nix/store")
# Names of users, zones and hosts, certificates, and where libraries are. Nothing a service keeps its secrets in.
CONFIGURATION: Final = (
    "/etc/alternatives",
    "/etc/ca-certificates",
    "/etc/group",
    "/etc/gai.conf",
    "/etc/host.conf",
    "/etc/hosts",
    "/etc/ld.so.cache",
    "/etc/ld.so.conf",
    "/etc/ld.so.conf.d",
    "/etc/localtime",
    "/etc/mime.types",
    "/etc/nsswitch.conf",
    "/etc/os-release",
    "/etc/passwd",
    "/etc/pki",
    "/etc/protocols",
    "/etc/resolv.conf",
    "/etc/services",
    "/etc/ssl",
    "/etc/timezone",
)
KERNEL: Final = ("/proc", "/sys/devices/system/cpu")
RESOLVERS: Final = ("/run/systemd/resolve",)  # where /etc/resolv.conf may point


def links() -> dict[str, str]:
    """Those of the programs' folders that are names of others, and where they lead."""
    return {path: str(Path(path).readlink()) for path in PROGRAMS if Path(path).is_symlink()}
