//! What fleet must know of an image before it starts a container of it.

use serde::{Deserialize, Serialize};

use super::error::PodmanError;
use super::podman::Podman;

/// The label that marks how an image was made.
pub(super) const KIND_LABEL: &str = "fleet.kind";
/// Value of [`KIND_LABEL`] for an image that borrows the host's `/usr`.
pub(super) const SKELETON: &str = "skeleton";

/// Where an image's programs come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ImageKind {
    /// The image holds its programs.
    Complete,
    /// For development and tests: the host's `/usr` is mounted read-only.
    Skeleton,
}

/// One image in fleet's storage.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Image {
    pub id: String,
    pub kind: ImageKind,
    /// Bytes.
    pub size: u64,
}

impl Podman {
    /// The image of that name or id; `None` where fleet's storage has none. Asked once per name.
    pub(super) async fn image(&self, name: &str) -> Result<Option<Image>, PodmanError> {
        if let Some(image) = self.known_image(name) {
            return Ok(Some(image));
        }
        let finished =
            self.finish(None, ["image", "inspect", name], self.host().around.patience).await?;
        match finished.code {
            Some(0) => {}
            Some(125) if is_missing(&finished.stderr) => return Ok(None),
            code => {
                return Err(PodmanError::Failed {
                    verb: "image inspect".to_owned(),
                    status: code.unwrap_or(-1),
                    stderr: finished.stderr_tail(),
                });
            }
        }
        let image = parse(&finished.stdout)
            .map_err(|reason| PodmanError::Output { verb: "image inspect".to_owned(), reason })?;
        self.remember_image(name, &image);
        Ok(Some(image))
    }
}

/// Podman has one status for all failures of `image inspect`.
fn is_missing(stderr: &[u8]) -> bool {
    let text = String::from_utf8_lossy(stderr);
    text.contains("image not known") || text.contains("no such image")
}

fn parse(stdout: &[u8]) -> Result<Image, String> {
    #[derive(Deserialize)]
    #[serde(rename_all = "PascalCase")]
    struct Raw {
        id: String,
        #[serde(default)]
        size: u64,
        #[serde(default)]
        labels: Option<std::collections::HashMap<String, String>>,
    }
    let rows: Vec<Raw> = serde_json::from_slice(stdout).map_err(|error| error.to_string())?;
    let raw = rows.into_iter().next().ok_or("an empty list")?;
    let label = raw.labels.as_ref().and_then(|labels| labels.get(KIND_LABEL));
    let kind = if label.map(String::as_str) == Some(SKELETON) {
        ImageKind::Skeleton
    } else {
        ImageKind::Complete
    };
    Ok(Image { id: raw.id, kind, size: raw.size })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_label_tells_a_skeleton() {
        let of = |text: &str| parse(text.as_bytes());
        let skeleton =
            r#"[{"Id":"abc","Size":4096,"Labels":{"fleet.kind":"skeleton"},"Other":[1]}]"#;
        let complete = r#"[{"Id":"abc","Size":9,"Labels":null}]"#;
        assert_eq!(
            [of(skeleton), of(complete), of("[]")],
            [
                Ok(Image { id: "abc".into(), kind: ImageKind::Skeleton, size: 4096 }),
                Ok(Image { id: "abc".into(), kind: ImageKind::Complete, size: 9 }),
                Err("an empty list".into()),
            ]
        );
    }
}
