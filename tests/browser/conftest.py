"""One Chromium for all tests of the page, and the person before it."""

from __future__ import annotations

import os
import shutil
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from functools import partial
from pathlib import Path

import pytest
import pytest_asyncio
from playwright.async_api import Browser, async_playwright, expect

from libs.runtime.eventually import PATIENCE_S
from tests.browser.visitor import Visitor, visiting

CHROMIUM = Path(os.environ.get("HEADGATE_CHROMIUM", "/usr/bin/chromium"))

Visit = Callable[..., AbstractAsyncContextManager[Visitor]]
expect.set_options(timeout=PATIENCE_S * 1000)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.parent == Path(__file__).parent:
            item.add_marker(pytest.mark.timeout(300))


@pytest_asyncio.fixture(scope="session")
async def chromium() -> AsyncIterator[Browser]:
    if not shutil.which(CHROMIUM):
        missing = f"{CHROMIUM} is missing: apt-get install chromium, or name another one in HEADGATE_CHROMIUM"
        (pytest.fail if os.environ.get("CI") else pytest.skip)(missing)
    async with AsyncExitStack() as stack:
        playwright = await stack.enter_async_context(async_playwright())
        args = ["--no-sandbox"] if os.geteuid() == 0 else []  # Chromium refuses to sandbox what root starts
        browser = await playwright.chromium.launch(executable_path=CHROMIUM, args=args)
        stack.push_async_callback(browser.close)
        yield browser


@pytest.fixture
def visit(chromium: Browser) -> Visit:
    """`async with visit(there, token) as ann: …`: a browser profile of its own, watched until it is left."""
    return partial(visiting, chromium)
