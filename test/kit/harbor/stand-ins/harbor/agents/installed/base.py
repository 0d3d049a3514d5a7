"""Stand-in: what Harbor 0.22 offers to installed agents, as far as ours uses it. Harbor itself can't be installed here."""

import functools
import logging
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harbor.agents.model_connection import ModelConnectionSpec, resolve_connection


class NonZeroAgentExitCodeError(RuntimeError):
    pass


class ApiError(NonZeroAgentExitCodeError):
    pass


def error(name: str, base: type = ApiError) -> type:
    return type(name, (base,), {})


ApiRateLimitError = error("ApiRateLimitError")
ApiUsageLimitError = error("ApiUsageLimitError")
ApiInternalServerError = error("ApiInternalServerError")
ApiOverloadedError = error("ApiOverloadedError")
ApiResponseStalledError = error("ApiResponseStalledError")
OutputTokenExceededError = error("OutputTokenExceededError")
ContextWindowExceededError = error("ContextWindowExceededError")
UnknownApiError = error("UnknownApiError")
AgentSafetyRefusalError = error("AgentSafetyRefusalError")
AgentAuthenticationError = error("AgentAuthenticationError", NonZeroAgentExitCodeError)
ModelNotFoundError = error("ModelNotFoundError", NonZeroAgentExitCodeError)
NetworkConnectionError = error("NetworkConnectionError", NonZeroAgentExitCodeError)


@dataclass
class CliFlag:
    kwarg: str
    cli: str
    type: str = "str"
    choices: list[str] | None = None
    default: Any = None
    env_fallback: str | None = None
    format: str | None = None


@dataclass
class EnvVar:
    kwarg: str
    env: str
    type: str = "str"
    choices: list[str] | None = None
    default: Any = None
    env_fallback: str | None = None
    bool_true: str = "true"
    bool_false: str = "false"


@dataclass
class ErrorPattern:
    pattern: str
    exception: type


def with_prompt_template(function):
    @functools.wraps(function)
    async def wrapper(self, instruction, *args, **kwargs):
        return await function(self, self.render_instruction(instruction), *args, **kwargs)

    return wrapper


def coerce(value: Any, flag: CliFlag | EnvVar) -> Any:
    if flag.type == "int":
        return int(value)
    if flag.type == "bool":
        return value if isinstance(value, bool) else str(value).lower() in ("1", "true", "yes")
    if flag.type == "enum" and value not in (flag.choices or [value]):
        raise ValueError(f"{flag.kwarg} is none of {flag.choices}")
    return str(value)


class BaseInstalledAgent:
    CLI_FLAGS: list[CliFlag] = []
    ENV_VARS: list[EnvVar] = []
    MODEL_CONNECTION = ModelConnectionSpec()
    SUPPORTS_ATIF = False
    SUPPORTS_RESUME = False
    # three of Harbor's own, which ours must beat where both match
    ERROR_PATTERNS = [
        ErrorPattern(r"rate.?limit", ApiRateLimitError),
        ErrorPattern(r"Connection refused", NetworkConnectionError),
        ErrorPattern(r"Request timed out", NetworkConnectionError),
    ]
    _resume = False

    def __init__(
        self,
        logs_dir: Path,
        model_name: str | None = None,
        mcp_servers: list | None = None,
        skills_dir: str | None = None,
        version: str | None = None,
        extra_env: dict[str, str] | None = None,
        **kwargs: Any,
    ):
        given = {
            flag.kwarg: kwargs.pop(flag.kwarg)
            for flag in [*self.CLI_FLAGS, *self.ENV_VARS]
            if flag.kwarg in kwargs
        }
        if kwargs:
            raise TypeError(f"unknown: {', '.join(kwargs)}")
        self.logs_dir = Path(logs_dir)
        self.model_name = model_name
        self.mcp_servers = mcp_servers or []
        self.skills_dir = skills_dir
        self.logger = logging.getLogger("stand-in")
        self._version = version
        self._extra_env = dict(extra_env or {})
        self._flags = {
            flag.kwarg: coerce(given.get(flag.kwarg, flag.default), flag)
            for flag in [*self.CLI_FLAGS, *self.ENV_VARS]
            if given.get(flag.kwarg, flag.default) is not None
        }
        self._patterns = [
            (re.compile(one.pattern, re.IGNORECASE), one.exception) for one in self.ERROR_PATTERNS
        ]

    @property
    def model_connection(self):
        return resolve_connection(self.model_name, self.MODEL_CONNECTION, self._extra_env)

    def render_instruction(self, instruction: str) -> str:
        return instruction

    def build_cli_flags(self) -> str:
        parts = []
        for flag in self.CLI_FLAGS:
            value = self._flags.get(flag.kwarg)
            if value is None:
                continue
            if flag.type == "bool":
                parts.extend([flag.cli] if value else [])
            else:
                parts.append(f"{flag.cli} {value}")
        return " ".join(parts)

    def resolve_env_vars(self) -> dict[str, str]:
        resolved = {}
        for variable in self.ENV_VARS:
            value = self._flags.get(variable.kwarg)
            if value is None:
                continue
            if variable.type == "bool":
                value = variable.bool_true if value else variable.bool_false
            resolved[variable.env] = str(value)
        return resolved

    async def ensure_system_dependencies(self, environment, dependencies) -> None:
        for name in dependencies:
            await environment.exec(f"command -v {name}", user="root")

    async def exec_as_agent(self, environment, command, env=None, cwd=None, timeout_sec=None):
        result = await environment.exec(
            command=f"set -o pipefail; {command}", env=env, cwd=cwd, timeout_sec=timeout_sec
        )
        if result.return_code != 0:
            raise self._classify(command, result)
        return result

    def _classify(self, command: str, result) -> NonZeroAgentExitCodeError:
        output = f"{result.stdout or ''}\n{result.stderr or ''}"
        last = None
        for pattern, exception in self._patterns:
            for match in pattern.finditer(output):
                if last is None or match.end() > last[0]:
                    last = (match.end(), exception)
        exception = NonZeroAgentExitCodeError if last is None else last[1]
        return exception(f"exit {result.return_code}: {command}\n{output[-1500:]}")

    async def setup(self, environment) -> None:
        await self.install(environment)
        if self._version is None:
            result = await environment.exec(command=self.get_version_command())
            if result.return_code == 0 and result.stdout:
                self._version = self.parse_version(result.stdout)

    def version(self) -> str | None:
        return self._version

    async def resume(self, instruction, environment, context) -> None:
        self._resume = True
        try:
            await self.run(instruction, environment, context)
        finally:
            self._resume = False
