//! The program as a script that tells what it was given and reaches.

use std::{fs, os::unix::fs::PermissionsExt as _, path::Path};

use colloquy_base::fair_queue::Priority;
use colloquy_config::{FetchConfig, SandboxConfig};

use super::*;

fn reason(told: &[u8]) -> String {
    match failure(told) {
        ProgramFailure::Refused(reason) => reason,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_reason_is_one_line() {
    let told = b"WARNING: old\nERROR: [platform] abc: Private video. Sign in\x1b[0m\n";
    assert_eq!(reason(told), "[platform] abc: Private video. Sign in[0m");
    assert_eq!(reason(b"\xff\xfe"), "the program failed");
    assert_eq!(
        reason(&[b"ERROR: ", &[b'x'; 5_000][..]].concat()).len(),
        LONGEST_REASON
    );
}

#[test]
fn an_option_is_unknown_where_the_program_itself_says_so() {
    let own = b"Usage: yt-dlp [OPTIONS]\n\nyt-dlp: error: no such option: --use-extractors\n";
    assert_eq!(unknown_option(own).as_deref(), Some("--use-extractors"));
    let platforms = b"ERROR: [x] y: error: no such option: --use-extractors\n";
    assert_eq!(unknown_option(platforms), None);
}

/// As yt-dlp says it.
#[test]
fn what_passes_is_told_from_what_stays() {
    for line in [
        "[youtube] x: Sign in to confirm you\u{2019}re not a bot. Use --cookies-from-browser or --cookies for the authentication.",
        "[youtube] x: Video unavailable. This content isn't available, try again later. The current session has been rate-limited by YouTube for up to an hour.",
        "[vimeo] x: Unable to download JSON metadata: HTTP Error 429: Too Many Requests (caused by <HTTPError 429: Too Many Requests>)",
        "[generic] Unable to download webpage: HTTP Error 503: Service Unavailable (caused by <HTTPError 503: Service Unavailable>)",
        "[youtube] x: Unable to download API page: [Errno -3] Temporary failure in name resolution (caused by TransportError('[Errno -3] ..'))",
        "[vimeo] x: Unable to download webpage: HTTPSConnection(host='vimeo.example', port=443): Failed to resolve 'vimeo.example' ([Errno -2] Name or service not known)",
        "[youtube] x: Unable to download webpage: <urlopen error [Errno 111] Connection refused> (caused by URLError(..))",
        "[youtube] x: Unable to download webpage: ('Connection aborted.', RemoteDisconnected('Remote end closed connection without response'))",
        "[youtube] x: Unable to download webpage: The read operation timed out",
        "[youtube] x: Unable to download API page: <urlopen error Tunnel connection failed: 502 Bad Gateway> (caused by ProxyError(..))",
    ] {
        let failure = failure(format!("ERROR: {line}\n").as_bytes());
        assert!(failure.may_pass(), "{line}: {failure:?}");
        let words = failure.to_string();
        assert!(words.starts_with("the video's platform"), "{words}");
    }
    for line in [
        "[youtube] x: Private video. Sign in if you've been granted access to this video.",
        "[youtube] x: Sign in to confirm your age. This video may be inappropriate for some users.",
        "[youtube] x: Video unavailable. This video has been removed by the uploader",
        "[youtube] x: Join this channel to get access to members-only content like this video.",
        "[generic] Unable to download webpage: HTTP Error 404: Not Found (caused by <HTTPError 404: Not Found>)",
        "Unsupported URL: https://videos.example/x",
        "[youtube:tab] x: This channel does not have a streams tab",
    ] {
        assert_eq!(reason(format!("ERROR: {line}\n").as_bytes()), line);
    }
}

#[test]
fn an_address_that_the_proxy_refuses_is_told_in_few_words() {
    let told = b"ERROR: [youtube] x: Unable to download API page: <urlopen error Tunnel connection failed: 403 Forbidden> \
        (caused by ProxyError('http://colloquy:secret@127.0.0.1:4000'))\n";
    assert_eq!(reason(told), NOT_ALLOWED);
}

/// Stands for yt-dlp and does this, as bash alone, without other processes. `$proxy` is the address of the proxy that it is told by its
/// standard input, `$pair` the credentials, `$given` all of its arguments.
fn double(folder: &Path, does: &str) -> PathBuf {
    let path = folder.join("yt-dlp");
    let script = format!(
        "#!/bin/bash\ngiven=$*\nwhile [ $# -gt 1 ]; do\n  [ \"$1 $2\" != '--config-locations -' ] || read -r option proxy\n  \
         [ \"$1\" != --use-extractors ] || extractors=$2\n  shift\ndone\n[ \"$option\" = --proxy ] || exit 9\nproxy=${{proxy#http://}}\npair=${{proxy%@*}} proxy=${{proxy#*@}}\n{does}\n"
    );
    fs::write(&path, script).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    path
}

/// Bash that writes `$pair` in base64 to `$basic`.
const BASE64: &str = r#"letters=ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/
basic=
for ((at = 0; at < ${#pair}; at += 3)); do
  part=${pair:at:3} bits=0
  for ((i = 0; i < 3; i++)); do printf -v code %d "'${part:i:1}"; bits=$((bits << 8 | code)); done
  for i in 18 12 6 0; do basic+=${letters:bits >> i & 63:1}; done
  case ${#part} in 1) basic=${basic:0:-2}==;; 2) basic=${basic:0:-1}=;; esac
done"#;

/// A sandbox whose children become the program at once. How they are confined has tests of its own.
fn sandbox(folder: &Path) -> Sandbox {
    let program = folder.join("colloquy");
    let script = "#!/bin/sh\nwhile [ \"$1\" != -- ]; do shift; done\nshift\nexec \"$@\"\n";
    fs::write(&program, script).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    Sandbox::new(&SandboxConfig {
        program: Some(program),
        ..SandboxConfig::default()
    })
}

/// Does something with a program.
async fn with<T>(folder: &Path, program: PathBuf, does: impl AsyncFnOnce(YtDlp<'_>) -> T) -> T {
    let settings = KnowledgeConfig {
        yt_dlp: Some(program),
        ..KnowledgeConfig::default()
    };
    let sandbox = sandbox(folder);
    let fetcher = Fetcher::new(&FetchConfig::default()).unwrap();
    let claim = Claim::new(Priority::Background, "acme");
    does(YtDlp::new(&settings, &sandbox, &fetcher, claim)).await
}

async fn described(folder: &Path, program: PathBuf) -> Result<String, ProgramFailure> {
    let describe = async |program: YtDlp<'_>| program.describe("https://youtu.be/x").await;
    let described = with(folder, program, describe).await?;
    Ok(String::from_utf8(described).unwrap())
}

async fn checked(folder: &Path, program: PathBuf) -> Result<String, ProgramFailure> {
    let check = async |program: YtDlp<'_>| program.check().await;
    with(folder, program, check).await
}

/// A program that says its version, and else does this.
fn script(folder: &Path, does: &str) -> PathBuf {
    let path = folder.join("yt-dlp");
    let script = format!(
        "#!/bin/sh\n[ \"$*\" != '--ignore-config --version' ] || {{ echo 2021.12.01; exit 0; }}\n{does}\n"
    );
    fs::write(&path, script).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    path
}

#[tokio::test]
async fn what_the_program_fetches_goes_through_the_guarded_client() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let open = listener.local_addr().unwrap().port();
    let folder = tempfile::tempdir().unwrap();
    let does = format!(
        "{BASE64}\nfor target in 127.0.0.1:{open} 127.0.0.1:1 localhost:{open} 169.254.169.254:80 [::1]:80; do\n\
         for begin in \"CONNECT $target\" \"GET http://$target/latest/meta-data/\"; do\n\
         exec 3<>/dev/tcp/${{proxy%:*}}/${{proxy#*:}}\n\
         printf '%s HTTP/1.1\\r\\nProxy-Authorization: Basic %s\\r\\n\\r\\n' \"$begin\" \"$basic\" >&3\n\
         read -r line <&3; echo \"${{line%$'\\r'}}\"\ndone; done\n\
         exec 3<>/dev/tcp/${{proxy%:*}}/${{proxy#*:}}\nprintf 'CONNECT 1.1.1.1:443 HTTP/1.1\\r\\n\\r\\n' >&3\n\
         read -r line <&3; echo \"${{line%$'\\r'}}\"; echo $extractors; compgen -e"
    );
    let program = double(folder.path(), &does);
    let printed = described(folder.path(), program).await.unwrap();
    let mut lines = printed.lines();
    let refused: Vec<&str> = lines.by_ref().take(10).collect();
    assert_eq!(refused, ["HTTP/1.1 403 Forbidden"; 10], "{printed}");
    let stranger = lines.next();
    assert_eq!(stranger, Some("HTTP/1.1 407 Proxy Authentication Required"));
    let extractors = lines.next().unwrap();
    assert!(
        extractors.split(',').any(|it| it == "youtube"),
        "{extractors}"
    );
    assert!(!extractors.contains("generic") && !extractors.contains("consent"));
    let environment = lines.collect::<Vec<_>>().join(" ").to_lowercase();
    assert!(!environment.contains("proxy"), "{environment}");
}

#[tokio::test]
async fn no_argument_has_the_credentials_of_the_proxy() {
    let folder = tempfile::tempdir().unwrap();
    let program = double(folder.path(), "echo \"$pair\"; echo \"$given\"");
    let printed = described(folder.path(), program).await.unwrap();
    let (pair, given) = printed.split_once('\n').unwrap();
    let (user, password) = pair.split_once(':').unwrap();
    assert_eq!((user, password.len()), ("colloquy", 43), "{pair}");
    assert!(!given.contains(password), "{given}");
}

#[tokio::test]
async fn a_program_that_is_not_there_is_not_installed() {
    let folder = tempfile::tempdir().unwrap();
    let described = described(folder.path(), "/no/such/program".into()).await;
    assert!(matches!(described, Err(ProgramFailure::NotInstalled)));
}

/// As yt-dlp of before 2025 ends.
const OLD: &str = "printf 'Usage: yt-dlp [OPTIONS] URL [URL...]\\n\\nyt-dlp: error: no such option: --no-plugin-dirs\\n' >&2; exit 2";

#[tokio::test]
async fn a_program_that_is_too_old_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let program = script(folder.path(), OLD);
    for outcome in [
        checked(folder.path(), program.clone()).await,
        described(folder.path(), program).await,
    ] {
        let failure = outcome.unwrap_err();
        assert!(!failure.may_pass());
        let told = failure.to_string();
        assert!(
            told.contains("yt-dlp 2021.12.01 ") && told.contains(" too old"),
            "{told}"
        );
        assert!(told.ends_with(" --no-plugin-dirs"), "{told}");
    }
}

#[tokio::test]
async fn a_program_that_knows_its_options_is_told_by_its_version() {
    let folder = tempfile::tempdir().unwrap();
    let good = "for last; do :; done\n[ \"$last\" = --dump-single-json ] || exit 9\n\
        printf 'Usage: ..\\n\\nyt-dlp: error: You must provide at least one URL.\\nType yt-dlp --help\\n' >&2; exit 2";
    let program = script(folder.path(), good);
    assert_eq!(checked(folder.path(), program).await.unwrap(), "2021.12.01");
    let broken = "printf 'Traceback:\\nImportError: Python 3.8 is not supported\\n' >&2; exit 1";
    let failure = checked(folder.path(), script(folder.path(), broken)).await;
    let Err(ProgramFailure::Broken(why)) = failure else {
        panic!("{failure:?}");
    };
    assert_eq!(why, "ImportError: Python 3.8 is not supported");
}
