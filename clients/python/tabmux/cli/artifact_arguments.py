"""The commands about files, and the files of a prompt."""

import argparse
from collections.abc import Callable

AddLeaf = Callable[[str, str], argparse.ArgumentParser]


def add_artifacts(add: AddLeaf) -> None:
    """`ai artifacts`."""
    upload = add("ai artifacts upload", "upload files for later prompts, and print their names")
    upload.add_argument("files", nargs="+", metavar="FILE", help="kept for 24 hours")
    get = add("ai artifacts get", "write a file that an answer carries, or that was uploaded")
    get.add_argument("artifact", metavar="ARTIFACT", help="name, artifacts/ID, or id")
    get.add_argument("-o", "--output", required=True, metavar="FILE", help="where to write it")


def add_files(parser: argparse.ArgumentParser) -> None:
    """The files of a prompt."""
    parser.add_argument(
        "--file",
        dest="files",
        action="append",
        default=[],
        metavar="FILE",
        help="a file to send with the prompt; can be repeated, up to 10",
    )
