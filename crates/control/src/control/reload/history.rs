//! Configurations by which the switch has run: kept on the disk, and compared with at the start.

use std::time::{SystemTime, UNIX_EPOCH};

use tokio::sync::oneshot;

use super::{READ_TIME, Reloader};
use crate::api::model::Past;
use crate::api::reloads::Given;
use crate::config::settings;

impl Reloader {
    /// Begins the history of this start. Returns lines about what differs from the configuration that ran last.
    pub async fn begin(&mut self) -> Vec<String> {
        let last = self.history.last();
        if last.as_ref().is_some_and(|last| *last.text == *self.running.text) {
            return Vec::new();
        }
        let mut lines = Vec::new();
        let mut differences = Vec::new();
        if let Some(last) = last {
            let (number, source) = (last.past.number, &last.past.source);
            let name = format!("the configuration that ran last (number {number}, {source})");
            match self.read(Some(Given { source: source.clone(), text: last.text })).await {
                Some(Ok(mut config)) => {
                    self.take_choices(&mut config);
                    let found = settings::differences(&settings::all(&config), &self.current.get().settings);
                    differences = found.iter().map(ToString::to_string).collect();
                    let (count, file) = (found.len(), &self.file);
                    if count > 0 {
                        lines.push(format!(
                            "reload: warning: {name} differs from {file} in {count} settings; `holdfast history \
                             {number}` prints it, `holdfast rollback {number}` applies it"
                        ));
                    }
                }
                Some(Err(_)) => lines.push(format!("reload: warning: {name} is not valid any more")),
                None => {}
            }
        }
        lines.extend(self.keep("start", String::new(), differences).await);
        lines
    }

    /// Adds the running configuration to the history. Returns a warning if its file cannot be written. A separate
    /// thread writes it: the disk may hang.
    pub(super) async fn keep(&self, cause: &str, user: String, differences: Vec<String>) -> Option<String> {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let past = Past {
            began_unix_ns: u64::try_from(since.as_nanos()).unwrap_or(u64::MAX),
            user,
            cause: cause.to_owned(),
            source: self.running.source.clone(),
            differences,
            ..Past::default()
        };
        let (history, text) = (self.history.clone(), self.running.text.as_str().into());
        let (answer, answered) = oneshot::channel();
        let writer = std::thread::Builder::new().name("history".to_owned());
        // The receiver is gone if the answer is too late.
        let started = writer.spawn(move || drop(answer.send(history.add(past, text))));
        let error = match started {
            Ok(_) => match tokio::time::timeout(READ_TIME, answered).await {
                Ok(Ok(Ok(()))) => return None,
                Ok(Ok(Err(error))) => error.to_string(),
                _ => format!("it takes more than {} s", READ_TIME.as_secs()),
            },
            Err(error) => error.to_string(),
        };
        Some(format!("this configuration is not kept on the disk: {error}; make room, or name another `--state`"))
    }

    /// A warning if the switch would start by another text than it runs by.
    pub(super) async fn other_file(&self) -> Option<String> {
        let same = self.read(None).await.is_some_and(|file| file.is_ok_and(|file| file.text == self.running.text));
        let file = &self.file;
        (!same).then(|| {
            format!("{file} has another text, and a restart goes by it; write this configuration there to keep it")
        })
    }
}
