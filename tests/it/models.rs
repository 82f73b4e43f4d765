//! The commands about neural models, and a server whose models are missing or damaged.

mod neural;

use std::{
    fs::File,
    path::Path,
    process::{Command, Output},
};

use harness::{
    TestDatabase,
    elsewhere::eventually,
    process::{self, Server},
};

/// `colloquy models` with these arguments, on this folder. It opens no database.
fn models(folder: &Path, arguments: &[&str]) -> Command {
    let arguments = [&["models"], arguments].concat();
    let mut command = process::command(&TestDatabase::sqlite(), &arguments);
    command.env("COLLOQUY_MODELS_DIR", folder);
    command
}

/// Whether it succeeded, what it printed, and what it told the person at the terminal.
fn told(output: Output) -> (bool, String, String) {
    let text = |bytes| String::from_utf8(bytes).unwrap();
    let Output {
        status,
        stdout,
        stderr,
    } = output;
    (status.success(), text(stdout), text(stderr))
}

fn run(mut command: Command) -> (bool, String, String) {
    told(command.output().unwrap())
}

#[test]
fn without_a_folder_of_models_every_command_says_so() {
    let temporary = tempfile::tempdir().unwrap();
    let folder = temporary.path().join("none");
    let shown = folder.to_str().unwrap();
    let (is_good, path, _) = run(models(&folder, &["path"]));
    assert!(is_good && path == format!("{shown}\n"), "{path}");
    let (is_good, list, _) = run(models(&folder, &["list"]));
    let are_missing = list.lines().all(|line| line.contains("\tnot here\t"));
    assert!(is_good && are_missing && list.contains("silero-vad\t"));
    let (is_good, printed, said) = run(models(&folder, &["verify"]));
    assert!(is_good && printed.is_empty());
    assert_eq!(said, format!("colloquy: no models are in {shown}\n"));
    // Who names one wants it.
    let (is_good, printed, said) = run(models(&folder, &["verify", "silero-vad"]));
    let place = folder.join("silero-vad/model.onnx");
    let line = format!(
        "silero-vad\t{} is not there: colloquy models pull silero-vad\n",
        place.display()
    );
    assert_eq!((is_good, printed), (false, line));
    assert!(said.contains("1 of the models in"), "{said}");
    let (is_good, _, said) = run(models(&folder, &["pull", "silero"]));
    assert!(!is_good && said.contains("there is no such model; there are whisper"));
    assert!(!folder.exists());
    let nowhere = temporary.path().join("nowhere");
    let pull = ["pull", "silero-vad", "--from", nowhere.to_str().unwrap()];
    let (is_good, _, said) = run(models(&folder, &pull));
    assert!(
        !is_good && said.contains("No such file or directory"),
        "{said}"
    );
    assert!(
        said.contains("silero-vad: model.onnx could not be got"),
        "{said}"
    );
}

/// What a server says that is to have this transcriber, and cannot.
fn refused(folder: &Path, transcriber: &str) -> String {
    let database = TestDatabase::sqlite();
    let mut serve = process::command(&database, &["serve"]);
    serve.env("COLLOQUY_MODELS_DIR", folder);
    serve.env("COLLOQUY_HTTP_LISTEN", "127.0.0.1:0");
    serve.env("COLLOQUY_TRANSCRIBER_MODEL", transcriber);
    let (is_good, _, said) = run(serve);
    assert!(!is_good);
    said
}

async fn serve(folder: &Path) -> Server {
    let settings = |config: &mut colloquy::Config| {
        config.inference.models_dir = Some(folder.to_owned());
    };
    Server::start(&TestDatabase::sqlite(), settings).await
}

async fn logs(server: &Server, what: &[&str]) {
    let all = || what.iter().all(|what| server.log().contains(what));
    eventually("the server logs it", async || all()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_says_which_model_is_missing_or_damaged_and_uses_neither() {
    let temporary = tempfile::tempdir().unwrap();
    let folder = temporary.path().join("models");
    let said = refused(&folder, "whisper-tiny.en");
    let pull = "colloquy models pull whisper-tiny.en";
    assert!(
        said.contains("transcriber.model: whisper-tiny.en"),
        "{said}"
    );
    assert!(said.contains(&format!("is not there: {pull}")), "{said}");
    logs(&serve(&folder).await, &["pocketsphinx"]).await;

    // Files of the right size with something else in them.
    let model = folder.join("whisper-tiny.en");
    std::fs::create_dir_all(&model).unwrap();
    for (name, bytes) in [("model.bin", 75_537_502), ("vocabulary.txt", 422_309)] {
        let file = File::create(model.join(name)).unwrap();
        file.set_len(bytes).unwrap();
    }
    let (is_good, list, _) = run(models(&folder, &["list"]));
    assert!(is_good && list.lines().any(|line| line.contains("\there\t")));
    let (is_good, printed, _) = run(models(&folder, &["verify"]));
    assert!(!is_good && printed.contains(&format!("model.bin is damaged: {pull}")));
    let said = refused(&folder, "whisper-tiny.en");
    assert!(said.contains(&format!("is damaged: {pull}")), "{said}");
    let why = ["the model cannot be used", "is damaged", "pocketsphinx"];
    logs(&serve(&folder).await, &why).await;
}
