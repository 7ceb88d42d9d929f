"""A browser that discards tabs when it is told to, as Chrome does by itself when memory is short."""

from __future__ import annotations

import json
from collections.abc import Generator
from contextlib import contextmanager
from typing import Final

from tests.cdp.browsers import RunningChromium, fresh_profile, running_chromium

DISCARD: Final = "/page?title=discard"
DISCARDED: Final = "/page?title=discarded"
_MANIFEST: Final = {
    "manifest_version": 3,
    "name": "discards",
    "version": "1",
    "permissions": ["tabs"],
    "host_permissions": ["<all_urls>"],
    "background": {"service_worker": "worker.js"},
}
_WORKER: Final = """
chrome.tabs.onUpdated.addListener(async (id, info, tab) => {
    if (info.status !== 'complete' || !(tab.url || '').endsWith('%s')) return;
    for (const each of await chrome.tabs.query({}))
        if ((each.url || '').includes('%s')) await chrome.tabs.discard(each.id);
});
"""


@contextmanager
def discarding_chromium(discarded: str = DISCARDED) -> Generator[RunningChromium, None, None]:
    """One that discards all tabs with `discarded` in their address when a page is opened at `DISCARD`."""
    with fresh_profile() as extension, fresh_profile() as profile:
        (extension / "manifest.json").write_text(json.dumps(_MANIFEST))
        (extension / "worker.js").write_text(_WORKER % (DISCARD, discarded))
        flags = (f"--load-extension={extension}", "--disable-features=DisableLoadExtensionCommandLineSwitch")
        with running_chromium(profile, *flags) as running:
            yield running
