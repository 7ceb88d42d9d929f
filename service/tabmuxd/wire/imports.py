"""What became of an import, as a message of the contract."""

from __future__ import annotations

from tabmux.v1 import web_ai_service_pb2 as pb

from tabmuxd.resources.imports import ImportReport


def import_message(report: ImportReport) -> pb.ImportSessionsResponse:
    """The counts, and why records were left out; neither addresses nor texts of theirs."""
    return pb.ImportSessionsResponse(
        imported_count=report.imported_count,
        unchanged_count=report.unchanged_count,
        skipped_count=report.skipped_count,
        skipped=[
            pb.SkippedRecord(
                index=skipped.index,
                import_id=skipped.import_id,
                cause=pb.SkippedRecord.Cause.ValueType(skipped.cause),
            )
            for skipped in report.skipped
        ],
    )
