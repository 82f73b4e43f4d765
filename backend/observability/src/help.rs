//! What each metric counts, as `/metrics` tells it (`# HELP`). The names stand beside the code that counts; a test holds both
//! against each other.

/// The names of counters and what they count.
const COUNTERS: &[(&str, &str)] = &[
    (
        "colloquy_analyses_ended_total",
        "Analyses that ended, by outcome.",
    ),
    (
        "colloquy_analysis_repairs_total",
        "Answers of models that did not fit the schema of an analysis and were asked for again.",
    ),
    (
        "colloquy_call_provider_failures_total",
        "Failures of chat, transcriber and synthesizer in calls, by code.",
    ),
    ("colloquy_calls_created_total", "Calls created."),
    (
        "colloquy_calls_ended_total",
        "Calls that ended on this node, by state.",
    ),
    (
        "colloquy_calls_refused_total",
        "Calls refused for want of room, by the bound that was reached.",
    ),
    (
        "colloquy_character_documents_refused_total",
        "Documents of characters refused because the memory for them was full.",
    ),
    (
        "colloquy_cost_nanodollars_total",
        "Settled cost of models in 1e-9 US dollars, by model.",
    ),
    (
        "colloquy_damaged_files_total",
        "Files of partners found to be gone or to differ from what was stored.",
    ),
    (
        "colloquy_generation_failures_total",
        "Failed requests to models of text generation, by model and reason.",
    ),
    (
        "colloquy_generation_fallbacks_total",
        "Failures of models after which another model was asked, by the model that failed.",
    ),
    (
        "colloquy_http_accept_errors_total",
        "Connections that the system did not let the server accept.",
    ),
    (
        "colloquy_http_bodies_refused_total",
        "Request bodies refused because the memory for bodies was full.",
    ),
    (
        "colloquy_http_connections_cut_total",
        "Connections cut for their silence, by reason.",
    ),
    (
        "colloquy_http_connections_refused_total",
        "Connections beyond the bounds of http.max_connections and http.max_connections_per_address.",
    ),
    (
        "colloquy_http_requests_total",
        "Requests answered, by method, route and status.",
    ),
    (
        "colloquy_job_runs_total",
        "Runs of background jobs, by kind and the state that they left the job in.",
    ),
    (
        "colloquy_ledger_settle_retries_total",
        "Settlements that were not stored at once and were tried again.",
    ),
    (
        "colloquy_media_checks_total",
        "Checks before a call, by whether a path to the media port was found.",
    ),
    (
        "colloquy_media_datagrams_dropped_total",
        "Datagrams of calls dropped because the inbox of the call was full.",
    ),
    (
        "colloquy_messaging_completions_total",
        "Messages of legacy messaging that were answered, by outcome.",
    ),
    (
        "colloquy_metrics_upkeeps_total",
        "Rounds of upkeep of the metrics themselves.",
    ),
    (
        "colloquy_provider_requests_total",
        "Requests to providers, by provider, kind and outcome.",
    ),
    (
        "colloquy_provider_retries_total",
        "Requests to providers that were tried again, by provider, kind and reason.",
    ),
    (
        "colloquy_queue_refused_total",
        "Requests refused because a queue was full, by queue.",
    ),
    (
        "colloquy_sandbox_runs_total",
        "Runs of sandboxed child processes, by outcome.",
    ),
    (
        "colloquy_speech_characters_total",
        "Characters spoken by the speech interface, by outcome.",
    ),
    (
        "colloquy_storage_refusals_total",
        "Files and texts refused for want of storage, by reason.",
    ),
    (
        "colloquy_tokens_total",
        "Settled tokens, by model and kind (input or output).",
    ),
    (
        "colloquy_transcript_seconds_total",
        "Seconds of recordings that were transcribed.",
    ),
    (
        "colloquy_transcripts_ended_total",
        "Transcripts that ended, by outcome.",
    ),
    (
        "colloquy_webhook_attempts_total",
        "Attempts to deliver a webhook, by outcome.",
    ),
];

/// The names of gauges and what they show.
const GAUGES: &[(&str, &str)] = &[
    ("colloquy_calls_active", "Calls that run on this node."),
    (
        "colloquy_disk_free_bytes",
        "Free space of the disk that has the least above its reserve, in bytes.",
    ),
    (
        "colloquy_disk_reserve_bytes",
        "Reserve of that disk, in bytes.",
    ),
    (
        "colloquy_generation_sockets",
        "Open WebSockets of text generation.",
    ),
    ("colloquy_http_connections", "Open connections."),
    (
        "colloquy_job_queue_depth",
        "Background jobs that are due and wait, on all nodes, by kind.",
    ),
    (
        "colloquy_ledger_queue_depth",
        "Reservations and settlements that wait to be stored.",
    ),
    (
        "colloquy_model_bytes",
        "Weights of each neural model that is loaded, in bytes.",
    ),
    (
        "colloquy_process_resident_bytes",
        "Resident memory of the process, in bytes.",
    ),
    (
        "colloquy_queue_taken",
        "Places of a queue that are taken, by queue.",
    ),
    (
        "colloquy_queue_waiting",
        "Requests that wait in a queue, by queue.",
    ),
    (
        "colloquy_reservations_open",
        "Reservations of this process that are not settled.",
    ),
    (
        "colloquy_stored_bytes",
        "Files and texts of all partners, in bytes, without deleted files that are not removed yet.",
    ),
];

/// The names of histograms and what they measure.
const HISTOGRAMS: &[(&str, &str)] = &[
    (
        "colloquy_analysis_seconds",
        "Time from the request of an analysis to its end, in seconds.",
    ),
    (
        "colloquy_generation_added_seconds",
        "Time that the server itself adds to the answer of a model, in seconds, by model.",
    ),
    (
        "colloquy_generation_first_token_seconds",
        "Time to the first token of a streamed answer, in seconds, by model.",
    ),
    (
        "colloquy_http_request_duration_seconds",
        "Time to the head of the answer, in seconds, by method and route.",
    ),
    (
        "colloquy_ledger_batch_operations",
        "Reservations and settlements stored in one transaction.",
    ),
    (
        "colloquy_messaging_completion_seconds",
        "Time from a message of legacy messaging to its answer, in seconds.",
    ),
    (
        "colloquy_provider_first_result_seconds",
        "Time to the first result of a provider, in seconds, by provider and kind.",
    ),
    (
        "colloquy_transcript_seconds",
        "Time from the request of a transcript to its end, in seconds.",
    ),
];

/// Tells the recorder of the process.
pub(crate) fn describe() {
    for (name, help) in COUNTERS.iter().copied() {
        metrics::describe_counter!(name, help);
    }
    for (name, help) in GAUGES.iter().copied() {
        metrics::describe_gauge!(name, help);
    }
    for (name, help) in HISTOGRAMS.iter().copied() {
        metrics::describe_histogram!(name, help);
    }
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeSet, fs, path::Path};

    use super::*;

    /// The names in calls of a macro of `metrics` in the sources below a folder.
    fn counted(folder: &Path, of: &str, names: &mut BTreeSet<String>) {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                counted(&path, of, names);
            } else if path.extension().is_some_and(|it| it == "rs") {
                let text = fs::read_to_string(&path).unwrap();
                for call in text.split(&format!("metrics::{of}!(")).skip(1) {
                    let name = call.trim_start().strip_prefix('"');
                    let name = name.and_then(|name| name.split('"').next());
                    names.extend(
                        name.filter(|name| !name.contains("test"))
                            .map(str::to_owned),
                    );
                }
            }
        }
    }

    #[test]
    fn every_metric_has_a_help_line() {
        let backend = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        for (of, told) in [
            ("counter", COUNTERS),
            ("gauge", GAUGES),
            ("histogram", HISTOGRAMS),
        ] {
            let mut names = BTreeSet::new();
            for part in fs::read_dir(backend).unwrap() {
                let sources = part.unwrap().path().join("src");
                if sources.is_dir() {
                    counted(&sources, of, &mut names);
                }
            }
            counted(&backend.join("src"), of, &mut names);
            let told: BTreeSet<String> = told.iter().map(|(name, _)| (*name).to_owned()).collect();
            assert_eq!(names, told, "{of}");
        }
    }
}
