"""What is kept on disk: resources, events and requests, in one SQLite file; the only importer of peewee."""

from tabmuxd.store.database import Store, StoreStatistics
from tabmuxd.store.errors import (
    StoreBusy,
    StoreClosed,
    StoreDamaged,
    StoreError,
    StoreFailed,
    StoreLocked,
    StoreRefused,
    StoreTooNew,
)
from tabmuxd.store.files import Files
from tabmuxd.store.live import ANY_BROWSER, Live
from tabmuxd.store.rows import Entry, History, Place, Request, ResourceKind, kind_of
from tabmuxd.store.transaction import Batch, Reader, Transaction, Wanted

__all__ = [
    "ANY_BROWSER",
    "Batch",
    "Entry",
    "Files",
    "History",
    "Live",
    "Place",
    "Reader",
    "Request",
    "ResourceKind",
    "Store",
    "StoreBusy",
    "StoreClosed",
    "StoreDamaged",
    "StoreError",
    "StoreFailed",
    "StoreLocked",
    "StoreRefused",
    "StoreStatistics",
    "StoreTooNew",
    "Transaction",
    "Wanted",
    "kind_of",
]
