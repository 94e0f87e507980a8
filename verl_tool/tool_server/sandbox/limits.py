"""What one run may use. Plain values: the zygote imports this, so nothing heavy may be imported here."""

from dataclasses import dataclass

MIB = 1024 * 1024


@dataclass(frozen=True, kw_only=True)
class Limits:
    """Bounds of one run, for its whole process tree unless said otherwise."""

    seconds: float = 10.0  # of its own time: waiting for a core on a busy machine does not count
    cpu_seconds: float = 10.0  # of all its threads and processes together
    memory_bytes: int = 2048 * MIB  # resident, of the tree; also the address space of each process
    processes: int = 128  # processes and threads
    open_files: int = 256  # of each process
    file_bytes: int = 512 * MIB  # of each file
    output_bytes: int = 400_000  # kept of each of stdout and stderr; the rest is read and dropped

    @property
    def wall_seconds(self) -> float:
        """The end by the clock on the wall, however long the run waited for a core."""
        return 3 * self.seconds + 10
