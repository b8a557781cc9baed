"""Which shard works on which pair of shards in a product."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ikpca.engines.messages import Visit

__all__ = ["tree_levels", "visits"]


def visits(sizes: Sequence[int], side: int) -> list[list[Visit]]:
    """Who works on which pair of shards: every shard on its next ones, in a circle.

    With an even number of shards two face each other; there, either takes half of the pair.
    """
    number = len(sizes)
    plan: list[list[Visit]] = [[] for _ in sizes]

    def invite(host: int, guest: int, rows: slice, columns: slice) -> None:
        for start in range(rows.start, rows.stop, side):
            part = slice(start, min(start + side, rows.stop))
            plan[host].append(Visit(guest, part, columns))

    for host in range(number):
        for step in range(1, (number - 1) // 2 + 1):
            guest = (host + step) % number
            invite(host, guest, slice(0, sizes[guest]), slice(0, sizes[host]))
    if number % 2 == 0:
        for host in range(number // 2):
            guest = host + number // 2
            middle = sizes[guest] // 2
            invite(host, guest, slice(0, middle), slice(0, sizes[host]))
            invite(guest, host, slice(0, sizes[host]), slice(middle, sizes[guest]))
    return plan


def tree_levels(number: int) -> Iterator[list[tuple[int, int]]]:
    """Pairs (a, b), level by level, of which a takes in b; in the end all is in 0.

    Examples
    --------
    >>> list(tree_levels(5))
    [[(0, 1), (2, 3)], [(0, 2)], [(0, 4)]]
    """
    step = 1
    while step < number:
        yield [(a, a + step) for a in range(0, number - step, 2 * step)]
        step *= 2
