//! The way from a file's root to one of its values.

/// One step of a [`Path`].
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Step {
    Key(String),
    Index(usize),
}

/// The way from the root to a value.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Path(pub(super) Vec<Step>);

impl Path {
    /// The file's root.
    pub(crate) fn root() -> Self {
        Path::default()
    }

    /// A key of the mapping at this path.
    pub(crate) fn key(&self, key: &str) -> Self {
        self.join(Step::Key(key.to_owned()))
    }

    /// An entry of the list at this path.
    pub(crate) fn index(&self, index: usize) -> Self {
        self.join(Step::Index(index))
    }

    pub(super) fn join(&self, step: Step) -> Self {
        let mut steps = self.0.clone();
        steps.push(step);
        Path(steps)
    }

    pub(super) fn parent(&self) -> Option<Self> {
        let (_, steps) = self.0.split_last()?;
        Some(Path(steps.to_vec()))
    }

    /// `limits.sandbox.pids`, `providers[1].name`; empty for the root.
    pub(crate) fn text(&self) -> String {
        let mut text = String::new();
        for step in &self.0 {
            match step {
                Step::Key(key) if text.is_empty() => text.push_str(key),
                Step::Key(key) => text.push_str(&format!(".{key}")),
                Step::Index(index) => text.push_str(&format!("[{index}]")),
            }
        }
        text
    }
}
