"""On which file system a path lies, by the kernel's list of mounts."""

import pytest

from queue_app.policy.mounts import NETWORK, filesystem_of, shared_over_a_network

MOUNTS = r"""/dev/sda1 / ext4 rw,relatime 0 0
proc /proc proc rw 0 0
server:/export /srv nfs4 rw 0 0
/dev/sdb1 /srv/local xfs rw 0 0
damaged /damaged
short /short btrfs
//nas/share /mnt/my\040share\134x cifs rw 0 0
tmpfs /run tmpfs rw 0 0
overlay /run overlay rw 0 0
"""


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/", "ext4"), ("/home/data", "ext4"), ("/srv", "nfs4"), ("/srv/data/x.sqlite3", "nfs4"), ("/srv2", "ext4"),
        ("/srv/local", "xfs"), ("/srv/local/x", "xfs"), ("/srv/locally", "nfs4"), ("/damaged/x", "ext4"),
        ("/short/x", "btrfs"), ("/mnt/my share\\x/db", "cifs"), ("/mnt/my share", "ext4"),
        ("/mnt/my\\040share\\134x/db", "ext4"), ("/run", "overlay"), ("/run/x", "overlay"), ("relative", ""), ("", ""),
    ],
)  # fmt: skip
def test_the_longest_mount_point_counts_and_of_two_alike_the_later(path: str, kind: str) -> None:
    assert filesystem_of(path, MOUNTS) == kind


def test_the_longest_counts_wherever_it_stands_in_the_list() -> None:
    assert filesystem_of("/srv/local/x", "\n".join(reversed(MOUNTS.splitlines()))) == "xfs"


@pytest.mark.parametrize("mounts", ["", "\n", "one", "one two", "/dev/sda1 /elsewhere ext4 rw 0 0", "a\t/\tc"])
def test_a_list_that_does_not_tell_gives_nothing(mounts: str) -> None:
    assert filesystem_of("/home/data", mounts) == ""


@pytest.mark.parametrize("kind", sorted(NETWORK))
def test_a_file_system_of_another_machine_is_known(kind: str) -> None:
    assert shared_over_a_network(kind) is True


@pytest.mark.parametrize("kind", ["", "ext4", "xfs", "btrfs", "overlay", "tmpfs", "fuse", "fuse.bindfs", "NFS"])
def test_one_of_this_machine_is_not(kind: str) -> None:
    assert shared_over_a_network(kind) is False
