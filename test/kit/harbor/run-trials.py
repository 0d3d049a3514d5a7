"""Plays Harbor's part for the installed agent: reads trials as JSON, runs them, and prints what came of each.

`bench/harbor` and the stand-ins are on PYTHONPATH. A trial has a folder, a home and a user of its own; `/logs/agent`
of the container is a folder of the machine here.
"""

import asyncio
import json
import os
import signal
import sys
from types import SimpleNamespace

from harbor.environments.base import BaseEnvironment
from harbor.models.agent.context import AgentContext
from pawl_agent import Pawl

AT_ONCE = 3


class LocalEnvironment(BaseEnvironment):
    def __init__(self, trial):
        self.trial = trial

    def localize(self, text):
        return text.replace("/logs/agent", self.trial["logs"])

    async def exec(self, command, user=None, env=None, cwd=None, timeout_sec=None):
        trial = self.trial
        variables = {**trial["environment"], **trial["extra_env"], **(env or {})}
        account = {} if user == "root" or trial["uid"] is None else {
            "user": trial["uid"], "group": trial["gid"], "extra_groups": []
        }
        child = await asyncio.create_subprocess_exec(
            "bash", "-c", self.localize(command),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env={name: self.localize(value) for name, value in variables.items()},
            cwd=cwd or trial["workspace"],
            start_new_session=True,
            **account,
        )
        try:
            stdout, stderr = await child.communicate()
        except asyncio.CancelledError:
            os.killpg(child.pid, signal.SIGKILL)
            await child.wait()
            raise
        return SimpleNamespace(
            return_code=child.returncode,
            stdout=stdout.decode(errors="replace"),
            stderr=stderr.decode(errors="replace"),
        )


async def wait_for_file(path):
    while not os.path.exists(path):
        await asyncio.sleep(0.02)


async def run_agent(agent, trial, environment, context):
    await agent.setup(environment)
    await agent.run(trial["instruction"], environment, context)
    if trial["resume"] is not None:
        await agent.resume(trial["resume"], environment, context)


async def play(trial):
    environment = LocalEnvironment(trial)
    context = AgentContext()
    agent = Pawl(
        logs_dir=trial["logs"],
        model_name=trial["model"],
        extra_env=trial["extra_env"],
        mcp_servers=[SimpleNamespace(**server) for server in trial["mcp_servers"]],
        skills_dir=trial["skills_dir"],
        package=trial["package"],
        version=trial["version"],
        **trial["kwargs"],
    )
    run = asyncio.create_task(run_agent(agent, trial, environment, context))
    # the time limit of a trial comes when the file is there: no test depends on how busy the machine is
    limit = [asyncio.create_task(wait_for_file(trial["ends_with"]))] if trial["ends_with"] else []
    await asyncio.wait([run, *limit], return_when=asyncio.FIRST_COMPLETED)
    for task in limit:
        task.cancel()
    error = None
    if not run.done():
        run.cancel()
        await asyncio.wait([run])
        error = "AgentTimeoutError"
    elif run.exception() is not None:
        error = type(run.exception()).__name__
        print(run.exception(), file=sys.stderr)
    agent.populate_context_post_run(context)
    return {"name": trial["name"], "error": error, "version": agent.version(), **vars(context)}


async def main():
    trials = json.load(sys.stdin)
    gate = asyncio.Semaphore(AT_ONCE)

    async def one(trial):
        async with gate:
            return await play(trial)

    print(json.dumps(await asyncio.gather(*(one(trial) for trial in trials))))


asyncio.run(main())
