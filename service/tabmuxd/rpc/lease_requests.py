"""Requests about leases as orders, checked for form."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from tabmux.v1 import lease_pb2
from tabmux.v1 import tab_service_pb2 as pb

from tabmuxd.resources.errors import invalid_field
from tabmuxd.resources.lease import LeaseTerms
from tabmuxd.resources.orders import LeaseOrder
from tabmuxd.rpc import fields

MAX_HOLDER_CHARACTERS: Final = 63
_DEFAULT_TTL: Final = timedelta(seconds=30)
_LEAST_TTL: Final = timedelta(seconds=5)
_MOST_TTL: Final = timedelta(minutes=10)


def lease_order(request: pb.AcquireLeaseRequest) -> LeaseOrder:
    """`AcquireLease`; absent terms are the defaults."""
    return LeaseOrder(
        tab=fields.tab_name("tab", request.tab),
        terms=lease_terms("terms", request.terms),
        request_id=fields.uuid("request_id", request.request_id),
    )


def named_lease(request: pb.RenewLeaseRequest | pb.ReleaseLeaseRequest) -> str:
    """Name of the lease that the request is about."""
    if not request.name:
        raise invalid_field("name", "must be leases/{lease}")
    return fields.lease_name("name", request.name)


def listed_tab(request: pb.ListLeasesRequest) -> str:
    """Name of the tab that `ListLeases` looks at; empty for all."""
    return fields.tab_name("tab", request.tab) if request.tab else ""


def lease_terms(field: str, terms: lease_pb2.LeaseTerms) -> LeaseTerms:
    """Terms as they are granted: the time to live is brought into its limits."""
    ttl = _DEFAULT_TTL
    if terms.HasField("ttl"):
        ttl = fields.clamped(f"{field}.ttl", terms.ttl, least=_LEAST_TTL, most=_MOST_TTL)
    if len(terms.holder) > MAX_HOLDER_CHARACTERS:
        raise invalid_field(
            f"{field}.holder", f"must have at most {MAX_HOLDER_CHARACTERS} characters", limit=MAX_HOLDER_CHARACTERS
        )
    return LeaseTerms(ttl, terms.holder, close_on_expiry=terms.close_on_expiry)
