//! `sandbox` of the manifest: what Podman would refuse only when a run starts.

use std::sync::LazyLock;

use regex::Regex;

use crate::bundle::SandboxSettings;
use crate::bundle::raw::RawSandbox;
use crate::bundle::yaml::{Document, Finding, Path};

/// The OCI runtimes whose seal fleet knows.
const RUNTIMES: [&str; 5] = ["crun", "runc", "runsc", "kata", "libkrun"];

/// `[host[:port]/]name[/name…][:tag][@digest]`, as the distribution reference grammar has it.
static IMAGE: LazyLock<Regex> = LazyLock::new(|| {
    let name = "[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*";
    let host = "[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?(?::[0-9]+)?";
    let pattern = format!(
        "^(?:{host}/)?{name}(?:/{name})*(?::[A-Za-z0-9_][A-Za-z0-9_.-]{{0,127}})?\
         (?:@[a-z0-9]+:[0-9a-f]{{32,128}})?$"
    );
    Regex::new(&pattern).expect("the pattern is a regex")
});

/// Longer than any name that a registry takes.
const MAX_IMAGE: usize = 400;

/// Whether a manifest may name the runtime.
pub(super) fn is_supported_runtime(name: &str) -> bool {
    RUNTIMES.contains(&name)
}

/// The settings; mistakes are reported.
pub(super) fn check_sandbox(raw: RawSandbox, document: &Document<'_>) -> SandboxSettings {
    let at = Path::root().key("sandbox");
    if let Some(image) = &raw.image
        && (image.len() > MAX_IMAGE || !IMAGE.is_match(image))
    {
        let message = format!("{image:?} is not the name of an image");
        document.report(
            &at.key("image"),
            Finding::error("invalid-value", message).hint(
                "write host/name:tag, for example localhost/fleet-sandbox, or remove the key",
            ),
        );
    }
    if let Some(runtime) = raw.runtime.as_deref().filter(|name| !RUNTIMES.contains(name)) {
        let message = format!("the OCI runtime {runtime:?} is not known");
        let hint = format!("write one of {}, or remove the key", RUNTIMES.join(", "));
        document
            .report(&at.key("runtime"), Finding::error("unsupported-runtime", message).hint(hint));
    }
    SandboxSettings { image: raw.image, runtime: raw.runtime }
}
