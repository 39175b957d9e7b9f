"""A file of orders in any of the forms that are read, told apart by its name or else by its first line."""

from collections.abc import Iterable, Iterator
from itertools import chain

from queue_app.policy.columns import read_table
from queue_app.policy.json_lines import read_json_lines
from queue_app.policy.lines import BadLine, Candidate, Line, NotReadable, text_lines

FORMATS = ("auto", "tsv", "csv", "jsonl")
_BY_NAME = {".tsv": "tsv", ".tab": "tsv", ".csv": "csv", ".jsonl": "jsonl", ".ndjson": "jsonl"}


def read_orders(
    chunks: Iterable[bytes], *, form: str = "auto", name: str = "-", sample: bool = False, queue: str = "snacks"
) -> Iterator[Candidate | BadLine]:
    """The lines of a file as orders to be checked or as bad lines; NotReadable, at once, if no line could be read.

    `form` is one of FORMATS; `auto` goes by the end of `name`, and then by the first line. `queue` is for lines that
    name none.
    """
    lines = text_lines(chunks)
    if form == "auto":
        form = next((kind for end, kind in _BY_NAME.items() if name.lower().endswith(end)), "")
    if not form:
        first = next((line for line in lines if not line.blank), None)
        if first is None:
            raise NotReadable("It is empty.")
        form, lines = _guess(first), chain([first], lines)
    if form == "jsonl":
        if sample:
            raise NotReadable("The form of the sample is a table, and this is JSON lines.")
        return read_json_lines(lines, queue=queue)
    return read_table(lines, delimiter="\t" if form == "tsv" else ",", sample=sample, queue=queue)


def _guess(first: Line) -> str:
    if first.text.lstrip().startswith("{"):
        return "jsonl"
    return "tsv" if "\t" in first.text else "csv"
