"""Opens gRPC channels to a place, with the options that fit the server's."""

import grpc

from tabmux.places import Place

# The server closes connections that ping more often than every 10 s, and never those of these values.
_OPTIONS: tuple[tuple[str, int], ...] = (
    ("grpc.keepalive_time_ms", 30_000),
    ("grpc.keepalive_timeout_ms", 10_000),
    ("grpc.keepalive_permit_without_calls", 0),
    ("grpc.http2.max_pings_without_data", 0),
    # grpcio 1.85.3 waits 1 s, then up to 2 min, before it connects again; calls fail at once meanwhile.
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 10_000),
)
# Without it a Python client takes in up to 16 MB of a watch that nobody reads, and the server cannot notice.
_WATCH_OPTIONS: tuple[tuple[str, int], ...] = (*_OPTIONS, ("grpc.http2.bdp_probe", 0))


def open_channel(place: Place, *, for_watch: bool = False) -> grpc.aio.Channel:
    """Channel to `place`; it connects with the first call."""
    options = _WATCH_OPTIONS if for_watch else _OPTIONS
    if place.encrypted:
        return grpc.aio.secure_channel(place.target, grpc.ssl_channel_credentials(), options)
    # What stays on this machine, with its token in clear, must not go by a proxy that the environment names.
    return grpc.aio.insecure_channel(place.target, (*options, ("grpc.enable_http_proxy", 0)))
