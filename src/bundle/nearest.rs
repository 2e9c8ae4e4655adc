//! The name that was probably meant.

/// The most similar of `known`, when it is similar enough to be meant.
pub(crate) fn nearest<'k>(seen: &str, known: impl IntoIterator<Item = &'k str>) -> Option<&'k str> {
    let seen = seen.to_lowercase();
    known
        .into_iter()
        .map(|name| (strsim::jaro_winkler(&seen, &name.to_lowercase()), name))
        .filter(|(likeness, _)| *likeness >= 0.85)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, name)| name)
}

/// [`nearest`] as a hint.
pub(crate) fn did_you_mean<'k>(
    seen: &str,
    known: impl IntoIterator<Item = &'k str>,
) -> Option<String> {
    nearest(seen, known).map(|name| format!("did you mean {name:?}?"))
}
