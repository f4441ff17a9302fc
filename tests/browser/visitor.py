"""Somebody before the page, in a profile of their own. Whatever they do, the page must not break its rules:

no fault in a script, no violation of the content policy, no request to another host, nothing wider than the screen, no
word broken in two.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from playwright.async_api import Browser, BrowserContext, ConsoleMessage, Locator, Page, Request

from libs.runtime.eventually import PATIENCE_S
from tests.fixtures.installation import Installation

REPOSITORY = Path(__file__).parents[2]
SCREENSHOTS = REPOSITORY / ".screenshots"
AXE = Path(__file__).parent / "axe.min.js"
PIPELINES = {  # three more than there are: what is said, a schema of the input, and questions are each one's own
    "HEADGATE_PIPELINES": "tests.fixtures.speaking,tests.fixtures.reporting,tests.fixtures.asking",
    "PYTHONPATH": str(REPOSITORY),
}
TELL_VIOLATIONS = """
addEventListener("securitypolicyviolation", (event) => {
  console.error(`CSP: ${event.violatedDirective} ${event.blockedURI}`);
});
"""
RUN_AXE = """
async () => {
  const found = await axe.run(document, {resultTypes: ["violations"]});
  const told = ({target, failureSummary}) => `${target} ${failureSummary}`;
  return found.violations.map(({id, nodes}) => `${id}: ${nodes.slice(0, 5).map(told).join(" | ")}`);
}
"""
TOO_WIDE = """
() => document.documentElement.scrollWidth <= innerWidth ? [] : [...document.querySelectorAll("body *")]
  .filter((one) => one.getBoundingClientRect().right > innerWidth + 1)
  .map((one) => one.outerHTML.slice(0, 120)).slice(0, 5)
"""
LONG_WORD = 24  # letters: a longer one may be broken
BROKEN = """
(most) => {
  const broken = [], texts = document.createTreeWalker(document.querySelector("main"), NodeFilter.SHOW_TEXT);
  while (texts.nextNode()) {
    const text = texts.currentNode;
    if (text.parentElement.closest("pre, code, .log, .visually-hidden")) continue;
    for (const {0: word, index} of text.data.matchAll(/\\p{L}+/gu)) {
      const range = new Range();
      range.setStart(text, index), range.setEnd(text, index + word.length);
      if (word.length <= most && new Set([...range.getClientRects()].map(({top}) => top)).size > 1) broken.push(word);
    }
  }
  return broken.slice(0, 5);
}
"""
GO = """
(view) => new Promise((there) => {
  if (location.hash === `#/${view}`) there();
  addEventListener("hashchange", () => setTimeout(there, 50), {once: true});
  location.hash = `#/${view}`;
})
"""
NOT_THE_PAGES = (
    "net::ERR_ABORTED",  # a page that is left waits for nothing any more
    "net::ERR_NETWORK_CHANGED",  # of this machine: another test's container came up; the page loads itself again
)
LIKING = "headgate.list"
NETWORK = re.compile(r"^Failed to load resource|net::ERR_")  # said of every refusal too, and of a server that is away


@dataclass
class Visitor:
    """A page, what went wrong on it so far, and the acts that many tests share."""

    page: Page
    url: str
    wrongs: list[str] = field(default_factory=list[str])
    unanswered: set[str] = field(default_factory=set[str])

    async def go(self, view: str) -> None:
        """To a view by its link, without loading the page again."""
        await self.page.evaluate(GO, view)
        await self.page.locator("main h1").wait_for()

    def job(self, text: str) -> Locator:
        """A job of the list, by any of its words."""
        return self.page.locator("article.job", has_text=text)

    def card(self, title: str) -> Locator:
        return self.page.get_by_role("region", name=title)

    async def form(self) -> Locator:
        """Of a new job, opened by its key."""
        await self.page.keyboard.press("n")
        return self.page.get_by_role("form", name="New job")

    async def submit_rehearsal(self, **fields: str | float) -> None:
        """By the form, as its labels name them; the seconds are those of `code`."""
        form = await self.form()
        await form.get_by_label("Pipeline").select_option("rehearsal")
        for label, value in fields.items():
            name = "Seconds: code" if label == "seconds" else label.replace("_", " ").capitalize()
            control = form.get_by_label(name)
            if await control.evaluate("(one) => one.tagName") == "SELECT":
                await control.select_option(str(value))
            else:
                await control.fill(str(value))
        await form.get_by_role("button", name="Submit").click()

    async def answer(self, act: str, *, reason: str = "", **fields: str) -> None:
        """The question that stands before an act."""
        dialog = self.page.get_by_role("dialog")
        for label, value in fields.items():
            control = dialog.get_by_label(label.replace("_", " ").capitalize())
            if await control.evaluate("(one) => one.tagName") == "SELECT":
                await control.select_option(value)
            else:
                await control.fill(value)
        if reason:
            await dialog.get_by_label("Why").fill(reason)
        await dialog.get_by_role("button", name=act, exact=True).click()
        await dialog.wait_for(state="detached")

    async def look(self, name: str) -> None:
        """A picture for developers of the page, nothing wider than the screen, and no word broken in two."""
        SCREENSHOTS.mkdir(exist_ok=True)
        await self.page.screenshot(path=SCREENSHOTS / f"{name}.png", full_page=True)
        too_wide: list[str] = await self.page.evaluate(TOO_WIDE)
        assert too_wide == [], f"{name} is wider than its screen"
        broken: list[str] = await self.page.evaluate(BROKEN, LONG_WORD)
        assert broken == [], f"words of {name} are broken in two"

    async def audit(self) -> list[str]:
        """What axe-core finds."""
        await self.page.evaluate(AXE.read_text())
        found: list[str] = await self.page.evaluate(RUN_AXE)
        return found

    def watch(self, context: BrowserContext) -> None:
        context.on("request", self._asked)
        context.on("requestfailed", self._failed)
        context.on("requestfinished", lambda request: self.unanswered.discard(request.url))
        context.on("console", self._said)
        context.on("weberror", lambda fault: self.wrongs.append(str(fault.error)))
        context.on("dialog", lambda dialog: self.wrongs.append(f"a dialog of the browser: {dialog.message}"))

    def _asked(self, request: Request) -> None:
        where = urlsplit(request.url)
        self.unanswered.add(request.url)
        if where.scheme not in ("data", "blob") and where.netloc != urlsplit(self.url).netloc:
            self.wrongs.append(f"asked another host: {request.url}")

    def _failed(self, request: Request) -> None:
        self.unanswered.discard(request.url)
        if "/v1/" not in request.url and request.failure not in NOT_THE_PAGES:
            self.wrongs.append(f"{request.failure} for {request.url}")

    def _said(self, message: ConsoleMessage) -> None:
        if message.type == "error" and not NETWORK.search(message.text):
            self.wrongs.append(message.text)


@asynccontextmanager
async def visiting(
    browser: Browser,
    there: Installation,
    token: str | None = None,
    *,
    width: int = 1280,
    look: str = "cards",
    **options: Any,
) -> AsyncIterator[Visitor]:
    """Signed in by a link where there is a token, with the list as they like it."""
    settings = {"viewport": {"width": width, "height": 900}, "reduced_motion": "reduce"} | options
    context = await browser.new_context(**settings)
    await context.add_init_script(TELL_VIOLATIONS)
    await context.add_init_script(
        f"localStorage.getItem('{LIKING}') ?? localStorage.setItem('{LIKING}', '{{\"look\": \"{look}\"}}')"
    )
    context.set_default_timeout(PATIENCE_S * 1000)
    page, url = await context.new_page(), there.up.url
    visitor = Visitor(page, url)
    visitor.watch(context)
    try:
        await page.goto(f"{url}/#token={token}" if token else url)
        await page.locator("main h1").wait_for()
        yield visitor
        assert visitor.wrongs == []
    except Exception as error:
        error.add_note(f"on the page: {visitor.wrongs}; not answered: {sorted(visitor.unanswered)}")
        raise
    finally:
        await context.close()
