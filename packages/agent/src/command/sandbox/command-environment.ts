import type { ProcessEnvironment } from '../../platform/base/process-environment-type.js';
import { secretVariables } from '../../platform/secrets/secret-variables.js';

/**
 * The environment variables of commands.
 *
 * 1. A fenced command gets only the variables on the list below and those that the user passes by name. It never gets a
 *    secret that was not passed.
 * 2. An unfenced command gets the user's variables without secrets.
 * 3. All commands run without a terminal, questions, a pager or colours.
 */

/** Variables that force colours in spite of NO_COLOR, and one that makes a test runner believe it is nested. */
const UNWANTED: ReadonlySet<string> = new Set(['FORCE_COLOR', 'CLICOLOR_FORCE', 'NODE_TEST_CONTEXT']);

/** Variables that make programs quiet and unattended. */
const QUIET = {
  CI: '1',
  TERM: 'dumb',
  NO_COLOR: '1',
  PAGER: 'cat',
  GIT_PAGER: 'cat',
  MANPAGER: 'cat',
  SYSTEMD_PAGER: 'cat',
  // `true` leaves the text as it is: a merge keeps its message, a commit without one fails.
  EDITOR: 'true',
  VISUAL: 'true',
  GIT_EDITOR: 'true',
  GIT_SEQUENCE_EDITOR: 'true',
  GIT_TERMINAL_PROMPT: '0',
  SSH_ASKPASS_REQUIRE: 'never',
  DEBIAN_FRONTEND: 'noninteractive',
} as const;

const KEPT: readonly RegExp[] = [
  // The user, the language, the time.
  /^(?:USER|LOGNAME|SHELL|LANG|LANGUAGE|LC_[A-Z]+|TZ|SOURCE_DATE_EPOCH|EMAIL)$/,
  // Authors and dates of commits, but no programs that git runs.
  /^GIT_(?:AUTHOR|COMMITTER)_(?:NAME|EMAIL|DATE)$/,
  // Compilers and make.
  /^(?:CC|CXX|CPP|AR|AS|LD|NM|RANLIB|STRIP|FC|CFLAGS|CXXFLAGS|CPPFLAGS|LDFLAGS|FFLAGS|LDLIBS|MAKEFLAGS|MAKE|ARCH|CROSS_COMPILE)$/,
  /^(?:PKG_CONFIG_\w+|LD_LIBRARY_PATH|LIBRARY_PATH|CPATH|C_INCLUDE_PATH|CPLUS_INCLUDE_PATH|CMAKE_\w+|NINJA_STATUS|CTEST_\w+|CCACHE_DISABLE|CUDA_\w+)$/,
  // Node.
  /^(?:NODE_(?:ENV|OPTIONS|PATH|DEBUG|NO_WARNINGS|EXTRA_CA_CERTS|USE_SYSTEM_CA|TLS_REJECT_UNAUTHORIZED)|NVM_(?:DIR|BIN|INC)|VOLTA_HOME|FNM_\w+|N_PREFIX|COREPACK_\w+|PNPM_HOME|BUN_INSTALL|DENO_INSTALL(?:_ROOT)?|UV_THREADPOOL_SIZE)$/,
  /^npm_config_(?:registry|nodedir|arch|platform|target|disturl|python|legacy_peer_deps|fund|audit|engine_strict|strict_ssl|cafile|maxsockets|fetch_\w+)$/i,
  /^(?:PLAYWRIGHT|PUPPETEER|CYPRESS|ELECTRON)_\w+$/,
  // Python.
  /^(?:PYTHON(?:PATH|HOME|UNBUFFERED|DONTWRITEBYTECODE|WARNINGS|HASHSEED|UTF8|IOENCODING|FAULTHANDLER|BREAKPOINT)|VIRTUAL_ENV|CONDA_(?:PREFIX|DEFAULT_ENV|EXE|PYTHON_EXE)|PYENV_(?:ROOT|VERSION|SHELL)|POETRY_VIRTUALENVS_\w+)$/,
  /^(?:PIP_(?:INDEX_URL|EXTRA_INDEX_URL|FIND_LINKS|NO_INDEX|CERT|DEFAULT_TIMEOUT|DISABLE_PIP_VERSION_CHECK|TRUSTED_HOST|REQUIRE_VIRTUALENV)|UV_(?:INDEX_URL|DEFAULT_INDEX|PYTHON|SYSTEM_PYTHON|LINK_MODE)|TOX_\w+|NOX_\w+|PYTEST_\w+)$/,
  // Rust, Go, Java and its kin.
  /^(?:RUST(?:UP_HOME|UP_TOOLCHAIN|UP_AUTO_INSTALL|FLAGS|DOCFLAGS|C|C_WRAPPER|_LOG|_BACKTRACE|_TEST_THREADS)|CARGO_(?:BUILD_\w+|PROFILE_\w+|TARGET_\w+|INCREMENTAL|NET_\w+|TERM_\w+|HTTP_CAINFO))$/,
  /^(?:GO(?:ROOT|FLAGS|PROXY|PRIVATE|NOPROXY|SUMDB|NOSUMDB|NOSUMCHECK|OS|ARCH|ARM|AMD64|MAXPROCS|TOOLCHAIN|EXPERIMENT|DEBUG|TRACEBACK|111MODULE)|CGO_\w+)$/,
  /^(?:JAVA_HOME|JAVA_OPTS|JDK_HOME|JDK_JAVA_OPTIONS|MAVEN_(?:HOME|OPTS)|M2_HOME|GRADLE_(?:HOME|OPTS)|KOTLIN_HOME|SCALA_HOME|SBT_OPTS|JVM_OPTS|SDKMAN_(?:DIR|CANDIDATES_DIR)|ANDROID_(?:HOME|SDK_ROOT|NDK_HOME|NDK_ROOT))$/,
  // Other languages and versions of tools.
  /^(?:GEM_(?:HOME|PATH)|RUBY(?:OPT|LIB)|RAILS_ENV|RACK_ENV|RBENV_(?:ROOT|VERSION)|BUNDLE_(?:PATH|WITHOUT|JOBS|GEMFILE)|PERL5LIB|PERL5OPT|PHP_INI_SCAN_DIR|LUA_PATH|LUA_CPATH|DOTNET_\w+|MIX_ENV|OPAM_SWITCH_PREFIX|CAML_LD_LIBRARY_PATH|JULIA_\w+|GHCUP_\w+)$/,
  /^(?:ASDF_(?:DIR|DATA_DIR)|MISE_DATA_DIR|HOMEBREW_(?:PREFIX|CELLAR|REPOSITORY)|NIX_(?:PATH|PROFILES|SSL_CERT_FILE)|LOCALE_ARCHIVE|GUIX_\w+)$/,
  // Certificates, and ways through a proxy.
  /^(?:SSL_CERT_FILE|SSL_CERT_DIR|REQUESTS_CA_BUNDLE|CURL_CA_BUNDLE|GIT_SSL_CAINFO|AWS_CA_BUNDLE)$/,
  /^(?:https?|ftp|all|no)_proxy$/i,
  // Parallelism and verbosity.
  /^(?:JOBS|NPROC|OMP_NUM_THREADS|MKL_NUM_THREADS|OPENBLAS_NUM_THREADS|VERBOSE|DEBUG|LOG_LEVEL|TEST_\w+)$/,
];

const PASSWORD_IN_ADDRESS = /:\/\/[^/\s@]*:[^/\s@]+@/;

const isKept = (name: string, value: string): boolean =>
  KEPT.some((pattern) => pattern.test(name)) && !PASSWORD_IN_ADDRESS.test(value);

/**
 * The variables that `passes` accepts, and the quiet ones. A variable that the user passes by name is always included.
 */
const chosen = (
  own: ProcessEnvironment,
  passed: readonly string[],
  passes: (name: string, value: string) => boolean,
): Readonly<Record<string, string>> => {
  const secret = new Set(secretVariables(own));
  const variables: Record<string, string> = {};
  for (const [name, value] of Object.entries(own)) {
    if (value === undefined) continue;
    if (passed.includes(name) || (!secret.has(name) && passes(name, value))) variables[name] = value;
  }
  return { ...variables, ...QUIET };
};

/** The environment of a fenced command. */
export const fencedEnvironment = (
  own: ProcessEnvironment,
  passed: readonly string[],
): Readonly<Record<string, string>> => chosen(own, passed, isKept);

/** The environment of an unfenced command. */
export const openEnvironment = (
  own: ProcessEnvironment,
  passed: readonly string[],
): Readonly<Record<string, string>> => chosen(own, passed, (name) => !UNWANTED.has(name));

/** `base` with `more` on top; an undefined value removes the variable. */
export const withVariables = (
  base: ProcessEnvironment,
  more: ProcessEnvironment,
): Readonly<Record<string, string>> => {
  const all: Record<string, string> = {};
  for (const [name, value] of [...Object.entries(base), ...Object.entries(more)]) {
    if (value === undefined) delete all[name];
    else all[name] = value;
  }
  return all;
};
