//! The command that prints the effective settings, without secrets.

use clap::Args;
use serde_json::Value;

use super::{print, row};
use crate::{Config, server::SystemSetting};

#[derive(Debug, Args)]
pub(super) struct SettingsArguments {
    /// Print only the settings whose value is another one than the default.
    #[arg(long)]
    changed: bool,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

/// The header of the table.
const COLUMNS: [&str; 4] = ["KEY", "VALUE", "DEFAULT", "ORIGIN"];

/// Prints the settings.
pub(super) fn run(config: &Config, arguments: &SettingsArguments) -> anyhow::Result<()> {
    let settings = config.settings()?.into_iter();
    let chosen = settings.filter(|setting| setting.is_changed || !arguments.changed);
    let chosen: Vec<SystemSetting> = chosen.map(Into::into).collect();
    if arguments.json {
        return print(&serde_json::to_string_pretty(&chosen)?);
    }
    print(&COLUMNS.join("\t"))?;
    for setting in &chosen {
        print(&line(setting))?;
    }
    Ok(())
}

fn line(setting: &SystemSetting) -> String {
    let value = match (setting.is_secret, setting.is_set) {
        (true, true) => "set".to_owned(),
        (_, false) => "not set".to_owned(),
        (false, true) => text(&setting.value),
    };
    let default = match setting.default.is_null() {
        true => "not set".to_owned(),
        false => text(&setting.default),
    };
    let origin = setting.variable.as_deref().unwrap_or(setting.origin);
    let columns: [String; COLUMNS.len()] = [setting.key.clone(), value, default, origin.to_owned()];
    row(&columns)
}

fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        value => value.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Secret;

    #[test]
    fn secrets_are_set_or_not_and_never_printed() {
        let config = Config {
            admin_key: Some(Secret::new("hunter-of-secrets")),
            ..Config::default()
        };
        let settings = config.settings().unwrap().into_iter();
        let settings: Vec<SystemSetting> = settings.map(Into::into).collect();
        let of = |key: &str| settings.iter().find(|it| it.key == key).unwrap();
        assert_eq!(line(of("admin_key")), "admin_key\tset\tnot set\tserver");
        assert_eq!(
            line(of("chat.api_key")),
            "chat.api_key\tnot set\tnot set\tdefault"
        );
        let listen = line(of("http.listen"));
        assert_eq!(
            listen,
            "http.listen\t127.0.0.1:8080\t127.0.0.1:8080\tdefault"
        );
        let json = serde_json::to_string(&settings).unwrap();
        assert!(!json.contains("hunter"));
    }
}
