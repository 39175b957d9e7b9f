"""Which file system a file lies on, by the kernel's list of mounts, and whether SQLite's locks can be trusted there."""

import re

NETWORK = frozenset(
    {
        *("nfs", "nfs4", "cifs", "smb", "smb2", "smb3", "smbfs", "ncpfs", "afs", "coda", "ceph", "glusterfs", "lustre"),
        *(
            "beegfs",
            "gpfs",
            "davfs",
            "fuse.sshfs",
            "fuse.glusterfs",
            "fuse.ceph",
            "fuse.s3fs",
            "fuse.davfs2",
            "fuse.rclone",
        ),
    }
)
"""Locks there are advisory at best: two hosts may write at once, and a journal may be seen late."""
_OCTAL = re.compile(r"\\([0-7]{3})")


def filesystem_of(path: str, mounts: str) -> str:
    """The type of the file system of an absolute path, '' when the list (the text of /proc/mounts) does not tell.

    The longest mount point that the path lies in counts; of two alike the later, which covers the earlier.
    """
    best, kind = 0, ""
    for line in mounts.splitlines():
        fields = line.split(" ")
        if len(fields) < 3:
            continue
        point = _OCTAL.sub(lambda match: chr(int(match[1], 8)), fields[1])
        inside = path == point or path.startswith(point if point.endswith("/") else f"{point}/")
        if inside and len(point) >= best:
            best, kind = len(point), fields[2]
    return kind


def shared_over_a_network(kind: str) -> bool:
    """Whether a file system of this type is served by another machine."""
    return kind in NETWORK
