"""Pawl as an installed agent of Harbor (0.22). README.md beside it says how to run it."""

import json
import shlex
from pathlib import Path
from typing import Any

from harbor.agents.installed.base import (
    AgentAuthenticationError,
    AgentSafetyRefusalError,
    ApiInternalServerError,
    ApiOverloadedError,
    ApiRateLimitError,
    ApiResponseStalledError,
    ApiUsageLimitError,
    BaseInstalledAgent,
    CliFlag,
    ContextWindowExceededError,
    EnvVar,
    ErrorPattern,
    ModelNotFoundError,
    NetworkConnectionError,
    OutputTokenExceededError,
    UnknownApiError,
    with_prompt_template,
)
from harbor.agents.installed.node_install import nvm_node_install_snippet
from harbor.agents.model_connection import ModelConnectionSpec
from harbor.environments.base import BaseEnvironment
from harbor.models.agent.context import AgentContext

# A task's container is disposable: nothing is fenced and nothing is asked.
FULL_TRUST = "--preset full"

LOGS = "/logs/agent"

# Providers that Pawl speaks to by their own APIs. Others need a base URL.
PROVIDERS = {"anthropic", "openai", "google", "openai-compatible", "ollama", "scripted"}
ALIASES = {"gemini": "google"}


def run_ended(reasons: str, words: str = "") -> str:
    """Matches from the last record of a run that ended for one of the reasons to the end, so that no
    other pattern matches nearer the end. `words`: what its message has to hold."""
    return rf'"type":"result","ok":false,"reason":"(?:{reasons})"[^\n]*?{words}[\s\S]*'


class Pawl(BaseInstalledAgent):
    """Runs `pawl -p --json`; takes tokens, cost and trajectory from the session's journal."""

    SUPPORTS_ATIF = True
    SUPPORTS_RESUME = True
    MODEL_CONNECTION = ModelConnectionSpec(passthrough=True)

    CLI_FLAGS = [
        CliFlag("effort", cli="--effort", type="enum", choices=["auto", "low", "medium", "high", "xhigh", "max"]),
        CliFlag("max_rounds", cli="--max-rounds", type="int"),
        CliFlag("max_usd", cli="--max-usd", type="str"),
        CliFlag("max_tokens", cli="--max-tokens", type="int"),
        CliFlag("max_minutes", cli="--max-minutes", type="str"),
        CliFlag("tasks", cli="--tasks", type="bool"),
        CliFlag("explore", cli="--explore", type="bool"),
    ]
    ENV_VARS = [
        EnvVar("auto_commit", env="PAWL_AUTO_COMMIT", type="bool"),
        EnvVar("pictures", env="PAWL_PICTURES", type="enum", choices=["auto", "yes", "no"]),
    ]
    # Harbor takes the match nearest the end, and the first of several that end together.
    ERROR_PATTERNS = [
        ErrorPattern(run_ended("badRequest|auth", r"model[^\n]*not.?found"), ModelNotFoundError),
        ErrorPattern(run_ended("overloaded|unreachable", "HTTP 500"), ApiInternalServerError),
        ErrorPattern(run_ended("rateLimited"), ApiRateLimitError),
        ErrorPattern(run_ended("quotaExhausted"), ApiUsageLimitError),
        ErrorPattern(run_ended("overloaded"), ApiOverloadedError),
        ErrorPattern(run_ended("timeout"), ApiResponseStalledError),
        ErrorPattern(run_ended("truncated|truncationLimit"), OutputTokenExceededError),
        ErrorPattern(run_ended("contextOverflow|compaction"), ContextWindowExceededError),
        ErrorPattern(run_ended("refused"), AgentSafetyRefusalError),
        ErrorPattern(run_ended("auth"), AgentAuthenticationError),
        ErrorPattern(run_ended("unreachable"), NetworkConnectionError),
        ErrorPattern(run_ended("malformed|badRequest"), UnknownApiError),
        # installation, and what ends before a session is open
        *BaseInstalledAgent.ERROR_PATTERNS,
    ]

    def __init__(self, *args: Any, package: str = "pawl", **kwargs: Any):
        """`package`: what npm installs; the address or path of a tarball takes no version."""
        super().__init__(*args, **kwargs)
        self._package = package

    @staticmethod
    def name() -> str:
        return "pawl"

    def get_version_command(self) -> str:
        return ". ~/.nvm/nvm.sh; pawl --version"

    def parse_version(self, stdout: str) -> str:
        lines = stdout.strip().splitlines()
        return lines[-1].strip() if lines else ""

    async def install(self, environment: BaseEnvironment) -> None:
        await self.ensure_system_dependencies(environment, ("curl", "bash", "git"))
        package = self._package
        if package == "pawl":
            package += f"@{self._version or 'latest'}"
        await self.exec_as_agent(
            environment,
            command=(
                f"set -euo pipefail; {nvm_node_install_snippet()} && "
                f"npm install -g --ignore-scripts {shlex.quote(package)} && pawl --version"
            ),
        )

    def _model_flags(self) -> str:
        """The model and its address as flags; the provider's own variables hold the key."""
        if not self.model_name or "/" not in self.model_name:
            raise ValueError("Name the model as provider/name: -m anthropic/claude-sonnet-5-5")
        provider, model = self.model_name.split("/", 1)
        provider = ALIASES.get(provider, provider)
        url = self.model_connection.configured_base_url
        if provider not in PROVIDERS:
            url = self.model_connection.base_url
            if not url:
                raise ValueError(f"Pawl knows no provider {provider}: set its base URL.")
            provider = "openai-compatible"
        flags = f"--model {shlex.quote(f'{provider}/{model}')}"
        return f"{flags} --base-url {shlex.quote(url)}" if url else flags

    def _environment(self) -> dict[str, str]:
        connection = self.model_connection
        env = {**connection.env, **self.resolve_env_vars()}
        provider = (self.model_name or "").split("/", 1)[0]
        if connection.api_key and ALIASES.get(provider, provider) not in PROVIDERS:
            env["OPENAI_COMPATIBLE_API_KEY"] = connection.api_key
        # The journal lies among the logs: it is there after a time limit, too.
        return {**env, "XDG_STATE_HOME": f"{LOGS}/state"}

    def _mcp_config(self) -> str:
        """The task's MCP servers, and that their tools may run, as the user's configuration."""
        lines: list[str] = []
        for server in self.mcp_servers:
            # strings and lists of them are written in TOML as in JSON
            lines.append(f"[mcp.servers.{json.dumps(server.name)}]")
            if server.transport == "stdio":
                lines.append(f"command = {json.dumps(server.command)}")
                lines.append(f"args = {json.dumps(list(server.args or []))}")
            else:
                lines.append(f"url = {json.dumps(server.url)}")
        if lines:
            lines.append("[rules.mcp]")
            lines.append(f"allow = {json.dumps([server.name for server in self.mcp_servers])}")
        return "\n".join(lines)

    async def _prepare(self, environment: BaseEnvironment) -> None:
        if self.skills_dir:
            source = shlex.quote(self.skills_dir)
            await self.exec_as_agent(
                environment,
                command=f"mkdir -p ~/.config/pawl/skills && cp -r {source}/. ~/.config/pawl/skills/",
            )
        config = self._mcp_config()
        if config:
            await self.exec_as_agent(
                environment,
                command=(
                    "mkdir -p ~/.config/pawl && "
                    f"printf '%s\\n' {shlex.quote(config)} > ~/.config/pawl/config.toml"
                ),
            )

    @with_prompt_template
    async def run(
        self, instruction: str, environment: BaseEnvironment, context: AgentContext
    ) -> None:
        env = self._environment()
        if not self._resume:
            await self._prepare(environment)
        flags = " ".join(
            part
            for part in (
                self._model_flags(),
                FULL_TRUST,
                self.build_cli_flags(),
                "--continue" if self._resume else "",
            )
            if part
        )
        log = f"{LOGS}/pawl.txt"
        session = f"""sed -n 's/^{{"type":"session".*"sessionId":"\\([^"]*\\)".*/\\1/p' {log} | tail -n 1"""
        export = f'pawl export "$({session})" --atif {LOGS}/trajectory.json'
        await self.exec_as_agent(
            environment,
            command=(
                ". ~/.nvm/nvm.sh; "
                f"pawl run --json {flags} -- {shlex.quote(instruction)} 2>&1 </dev/null | tee {log}; "
                # the run decides the exit code, and its last record is the last output
                f"code=$?; rm -rf {LOGS}/trajectory.json {LOGS}/trajectory-pictures; "
                f"{export} >{LOGS}/export.txt 2>&1; "
                # Pawl writes for its user alone, and Harbor may read as another one
                f"chmod -R a+rX {LOGS} 2>/dev/null; exit $code"
            ),
            env=env,
        )

    def populate_context_post_run(self, context: AgentContext) -> None:
        usage = self._trajectory_usage() or self._journal_usage()
        if usage is None:
            return
        context.n_input_tokens = usage["input"]
        context.n_cache_tokens = usage["cached"]
        context.n_output_tokens = usage["output"]
        context.cost_usd = usage["cost"]

    def _trajectory_usage(self) -> dict[str, Any] | None:
        try:
            trajectory = json.loads((self.logs_dir / "trajectory.json").read_text())
        except (OSError, ValueError):
            return None  # there is none after a time limit: then the journal is read
        metrics = trajectory["final_metrics"]
        return {
            "input": metrics["total_prompt_tokens"],
            "cached": metrics["total_cached_tokens"],
            "output": metrics["total_completion_tokens"],
            "cost": metrics.get("total_cost_usd"),
        }

    def _journal_usage(self) -> dict[str, Any] | None:
        """The sum of the newest session's usage, for a run that was killed."""
        try:
            journals = sorted(
                (self.logs_dir / "state" / "pawl" / "sessions").glob("*.jsonl"),
                key=lambda path: path.stat().st_mtime,
            )
            own = [path for path in journals if not is_task(path)]
            return sum_journal(own[-1]) if own else None
        except OSError as fault:
            self.logger.warning("Tokens and cost are not known: %s", fault)
            return None


def read_lines(path: Path) -> list[dict[str, Any]]:
    """The whole lines of a journal; the last one may be cut."""
    lines = []
    for line in path.read_text(errors="replace").splitlines():
        try:
            lines.append(json.loads(line))
        except ValueError:
            break
    return lines


def is_task(path: Path) -> bool:
    lines = read_lines(path)
    return not lines or "startedBy" in lines[0]


def sum_journal(path: Path) -> dict[str, Any]:
    """Adds up the usage that the events report, once for each id."""
    seen: set[str] = set()
    total: dict[str, Any] = {"input": 0, "cached": 0, "output": 0, "cost": 0.0}
    for line in read_lines(path):
        event = line.get("event", {})
        usage = event.get("usage") or event.get("outcome", {}).get("usage")
        call = f"{event.get('batchId')}/{event.get('callId')}"
        key = next(
            (event[name] for name in ("requestId", "compactionId", "hookId", "usageId") if name in event),
            call,
        )
        if usage is None or key in seen:
            continue
        seen.add(key)
        cached = usage["cacheReadTokens"]
        total["input"] += usage["inputTokens"] + cached + usage["cacheWriteTokens"]
        total["cached"] += cached
        total["output"] += usage["outputTokens"]
        if usage["costUsd"] is None:
            total["cost"] = None
        elif total["cost"] is not None:
            total["cost"] += usage["costUsd"]
    return total
