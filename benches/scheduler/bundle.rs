//! Bundles of many tasks that say nothing.

use std::path::Path;

use crate::env::repository;

const MANIFEST: &str = "version: 1
name: many
defaults: {model: none/none, park_after: 0}
providers:
  - {name: none, type: openai, base_url: 'http://127.0.0.1:9', models: [none], context_window_tokens: 100000}
pricing: {fallback: {input_per_million: 1, output_per_million: 1}}
";

/// A repository of a bundle with these tasks: (name, schedule).
pub fn make(dir: &Path, tasks: impl Iterator<Item = (String, String)>) {
    let mut files = vec![("manifest.yaml".to_owned(), MANIFEST.to_owned())];
    files.extend(tasks.map(|(name, schedule)| {
        let text = format!("schedule: '{schedule}'\nprompt: x\ncompletion: {{shell: 'true'}}\n");
        (format!("tasks/{name}.yaml"), text)
    }));
    let files: Vec<(&str, &str)> =
        files.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
    repository(dir, &files);
}
