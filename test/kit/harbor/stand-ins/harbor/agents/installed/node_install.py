"""Stand-in: Node is on the machine; Harbor installs it by nvm."""


def nvm_node_install_snippet() -> str:
    return ". ~/.nvm/nvm.sh && node --version"
