/** Paths of the home folder and the system that hold credentials. Every read of them is asked about. */

const IN_HOME =
  '.ssh .gnupg .aws .azure .kube .docker .netrc .npmrc .pypirc .git-credentials .pgpass .my.cnf .boto .s3cfg .vault-token .terraform.d .config/gh .config/gcloud .config/hub .config/op .config/doctl .config/rclone .config/pawl .config/git/credentials .cargo/credentials .cargo/credentials.toml .gem/credentials .m2/settings.xml .gradle/gradle.properties .local/share/keyrings .local/state/pawl .password-store .mozilla .thunderbird .config/google-chrome .config/chromium .config/BraveSoftware .config/Code .claude .codex .gemini .config/anthropic .config/openai .bash_history .zsh_history .python_history .node_repl_history .psql_history .mysql_history Library/Keychains Library/Cookies'.split(
    ' ',
  );

const OF_SYSTEM =
  /^\/(proc|sys|dev)(\/|$)|^\/etc\/(shadow|gshadow|sudoers|ssh|ssl\/private|pki|krb5\.keytab|NetworkManager|wireguard|openvpn)|^\/(var\/)?run\/|^\/var\/lib\/(docker|containerd|sss|NetworkManager)|^\/etc\/(sudoers\.d)/;

/** Whether a real absolute path holds credentials. */
export const isSecretPath = (path: string, home: string): boolean => {
  if (OF_SYSTEM.test(path)) return true;
  const base = home.endsWith('/') ? home : `${home}/`;
  if (home === '' || !path.startsWith(base)) return false;
  const inside = path.slice(base.length).toLowerCase();
  return IN_HOME.some(
    (place) => inside === place.toLowerCase() || inside.startsWith(`${place.toLowerCase()}/`),
  );
};
