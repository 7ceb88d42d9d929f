"""Where a session belongs, and whether an address is there: decisions over plain values."""

from __future__ import annotations

from datetime import timedelta

from tabmuxd.resources.errors import Reason, Refused, refuse
from tabmuxd.resources.orders import TabOrder
from tabmuxd.resources.session import Session
from tabmuxd.resources.tab import LoadMilestone
from tabmuxd.webai.providers.descriptor import Descriptor


def home(descriptor: Descriptor, session: Session) -> str:
    """Address at which the session goes on: its conversation's, or the start page if no prompt was submitted yet.

    Empty where its conversation has an address that nobody knows: a fresh chat is not taken for it.
    """
    if session.conversation_uri:
        return session.conversation_uri
    return "" if session.prompted else descriptor.start_uri


def is_unbegun(session: Session) -> bool:
    """Whether nothing was said yet in the session's conversation: the next prompt is its first."""
    return not session.conversation_uri and not session.prompted


def home_or_refusal(descriptor: Descriptor, session: Session) -> str:
    """As `home`; raises RECOVERY_FAILED (`no_address`) where nobody knows it."""
    if uri := home(descriptor, session):
        return uri
    raise no_address(session)


def order_of_tab(descriptor: Descriptor, session: Session, *, room_timeout: timedelta = timedelta(0)) -> TabOrder:
    """The tab to get for a session that has none, at its home; RECOVERY_FAILED (`no_address`)."""
    return TabOrder(
        browser=session.browser,
        uri=home_or_refusal(descriptor, session),
        group=session.new_tab_group or session.provider,
        activate=session.new_tab_activate,
        from_pool=session.new_tab_pooled,
        until=LoadMilestone.DOM_CONTENT_LOADED,
        room_timeout=room_timeout,
    )


def is_home(descriptor: Descriptor, session: Session, shown_uri: str, *, submitted: bool = False) -> bool:
    """Whether an address that a page shows is that of the session's conversation.

    A session without a conversation has to be at a new one until its first prompt was `submitted`; then the address
    that the provider gives it is its own.
    """
    if not descriptor.is_at(shown_uri):
        return False
    shown = descriptor.conversation_of(shown_uri)
    return descriptor.same_conversation(shown, session.conversation_uri) or (submitted and not session.conversation_uri)


def way(descriptor: Descriptor, conversation_uri: str, shown_uri: str) -> str:
    """Whereto a tab has to go in which a session begins; empty where it is there.

    `conversation_uri` is the one to continue; empty means the one that is shown, or a new one.
    """
    if not descriptor.is_at(shown_uri):
        return conversation_uri or descriptor.start_uri
    shown = descriptor.conversation_of(shown_uri)
    there = not conversation_uri or descriptor.same_conversation(shown, conversation_uri)
    return "" if there else conversation_uri


def begins_at(descriptor: Descriptor, conversation_uri: str, shown_uri: str, *, session: str, tab: str) -> str:
    """The conversation of a session that begins in a tab which shows this address; empty for a new one.

    Raises PROVIDER_NOT_SHOWN, and PROVIDER_CONVERSATION_CHANGED where another one than `conversation_uri` is shown.
    """
    if not descriptor.is_at(shown_uri):
        raise not_shown(descriptor, tab)
    shown = descriptor.conversation_of(shown_uri)
    if conversation_uri and not descriptor.same_conversation(shown, conversation_uri):
        raise another(descriptor, session, tab)
    return conversation_uri or shown


def unknown_provider(provider: str) -> Refused:
    """PROVIDER_NOT_FOUND."""
    return refuse(Reason.PROVIDER_NOT_FOUND, f"No provider {provider} is known; nothing was done.", provider=provider)


def not_shown(descriptor: Descriptor, tab: str) -> Refused:
    """PROVIDER_NOT_SHOWN."""
    return refuse(
        Reason.PROVIDER_NOT_SHOWN, f"{tab} is not at a page of {descriptor.id}.", provider=descriptor.id, tab=tab
    )


def another(descriptor: Descriptor, session: str, tab: str) -> Refused:
    """PROVIDER_CONVERSATION_CHANGED."""
    return refuse(
        Reason.PROVIDER_CONVERSATION_CHANGED,
        f"{tab} shows another conversation than that of {session}.",
        provider=descriptor.id,
        session=session,
        tab=tab,
    )


def no_address(session: Session) -> Refused:
    """RECOVERY_FAILED: a prompt was submitted, and the provider was not seen to give the conversation an address."""
    return _failed(
        session,
        0,
        "no_address",
        f"The address of the conversation of {session.name} is not known, so that it cannot go on. Start another"
        " session, with conversation_uri to go on with a conversation.",
    )


def given_up(session: Session, count: int) -> Refused:
    """RECOVERY_FAILED: the tabs of the session were closed as fast as it got them."""
    message = f"{session.name} lost its tab {count} times while it was brought back. See who closes it."
    return _failed(session, count, "attempts", message)


def _failed(session: Session, count: int, cause: str, message: str) -> Refused:
    return refuse(
        Reason.RECOVERY_FAILED, message, tab=session.tab, session=session.name, attempt_count=count, cause=cause
    )
