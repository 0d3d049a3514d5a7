"""Stand-in: where an agent's commands run."""


class BaseEnvironment:
    pass
