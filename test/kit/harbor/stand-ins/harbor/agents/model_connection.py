"""Stand-in: finds a provider's key and address among the variables of a job."""

from dataclasses import dataclass, field


@dataclass(frozen=True)
class ModelConnectionSpec:
    default_provider: str | None = None
    api_key_envs: tuple[str, ...] = ()
    base_url_envs: tuple[str, ...] = ()
    passthrough: bool = False


@dataclass(frozen=True)
class Connection:
    provider: str
    api_key: str | None
    base_url: str | None
    configured_base_url: str | None
    env: dict[str, str] = field(default_factory=dict)


def resolve_connection(model_name, spec, variables) -> Connection:
    provider = (model_name or "").split("/", 1)[0]
    stem = provider.upper().replace("-", "_")
    env = {
        name: variables[name]
        for name in (f"{stem}_API_KEY", f"{stem}_BASE_URL")
        if spec.passthrough and name in variables
    }
    url = variables.get(f"{stem}_BASE_URL")
    return Connection(provider, variables.get(f"{stem}_API_KEY"), url, url, env)
