"""Procrastinate: `procrastinate --app=of_procrastinate.app worker`, and the client as a script."""

# pyright: reportMissingImports=false, reportFunctionMemberAccess=false
from __future__ import annotations

import asyncio

import told
from procrastinate import App, PsycopgConnector

app = App(connector=PsycopgConnector(conninfo=told.URL))


@app.task(name="nothing")
async def nothing(number: int) -> None:
    told.started(number)


async def main() -> None:
    async with app.open_async():
        await told.serve_async(lambda number: nothing.defer_async(number=number))


if __name__ == "__main__":
    asyncio.run(main())
