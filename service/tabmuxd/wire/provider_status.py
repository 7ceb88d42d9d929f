"""What a tab shows of a provider, as messages of the contract."""

from __future__ import annotations

from tabmux.v1 import provider_pb2
from tabmux.v1 import web_ai_service_pb2 as pb

from tabmuxd.resources.provider_status import ProviderProbe, ProviderStatus
from tabmuxd.wire.redaction import redact_uri
from tabmuxd.wire.resources import warning_message
from tabmuxd.wire.times import timestamp


def provider_status_message(status: ProviderStatus) -> provider_pb2.ProviderStatus:
    """The status, its address without what looks like a secret."""
    message = provider_pb2.ProviderStatus(
        provider=status.provider,
        tab=status.tab,
        generation=status.generation,
        ready=status.ready,
        sign_in=provider_pb2.ProviderStatus.SignIn.ValueType(status.sign_in),
        composer=provider_pb2.ProviderStatus.Composer.ValueType(status.composer),
        interstitial=provider_pb2.ProviderStatus.Interstitial.ValueType(status.interstitial),
        shown_model=status.shown_model,
        conversation_uri=redact_uri(status.conversation_uri),
        warnings=[warning_message(warning) for warning in status.warnings],
        descriptor_version=status.descriptor_version,
        check_time=timestamp(status.check_time),
    )
    if status.limit is not None:
        message.limit.CopyFrom(
            provider_pb2.ProviderLimit(evidence=status.limit.evidence, reset_time=timestamp(status.limit.reset_time))
        )
    return message


def provider_probe_message(probe: ProviderProbe) -> pb.ProbeProviderResponse:
    """What each selector finds."""
    return pb.ProbeProviderResponse(
        findings=[
            provider_pb2.SelectorFinding(
                field=finding.field,
                selector=finding.selector,
                text=finding.text,
                match_count=finding.match_count,
                visible_count=finding.visible_count,
                taken_count=finding.taken_count,
                element=finding.element,
                problem=finding.problem,
                name=finding.name,
            )
            for finding in probe.findings
        ],
        generation=probe.generation,
        descriptor_version=probe.descriptor_version,
        check_time=timestamp(probe.check_time),
    )
