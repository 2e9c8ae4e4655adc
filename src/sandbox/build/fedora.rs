//! The image from Fedora's packages: dnf into a directory, as root of a user namespace, and its tar
//! straight into Podman.

use super::super::podman::Podman;
use super::pipe::{self, Maker};
use super::{BuildError, Python};
use crate::config::Config;

const PACKAGES: [&str; 5] = ["bash", "coreutils", "python3", "git-core", "ca-certificates"];

/// Everything but the tar goes to standard error. The directory's files belong to subordinate ids, so
/// that it is removed in the same namespace.
const SCRIPT: &str = r#"set -eu
root=$1 release=$2
shift 2
trap 'rm -rf --one-file-system -- "$root"' EXIT
mkdir -p -- "$root"
case $(dnf --version 2>/dev/null) in
    *dnf5*) set -- --use-host-config "$@" ;;
esac
dnf --installroot="$root" --releasever="$release" --setopt=install_weak_deps=False \
    --setopt=tsflags=nodocs --assumeyes install "$@" >&2
rm -rf -- "$root"/var/cache/dnf "$root"/var/cache/libdnf5
tar -C "$root" --numeric-owner -cf - .
"#;

/// Whether this host's packages come by dnf: by an os-release(5) text.
pub(super) fn is_fedora(release: &str) -> bool {
    let is = |line: &str| {
        let value = line.strip_prefix("ID=").or_else(|| line.strip_prefix("ID_LIKE="));
        value.is_some_and(|value| value.trim_matches('"').split(' ').any(|id| id == "fedora"))
    };
    release.lines().any(is)
}

/// `VERSION_ID` of an os-release text.
fn version(release: &str) -> Option<String> {
    let line = release.lines().find_map(|line| line.strip_prefix("VERSION_ID="))?;
    let version = line.trim_matches('"').to_owned();
    let plain = !version.is_empty()
        && version.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'.');
    plain.then_some(version)
}

/// Builds and imports the image.
pub(super) async fn build(
    podman: &Podman,
    config: &Config,
    release: &str,
    python: Python,
    say: &(dyn Fn(&str) + Send + Sync),
) -> Result<(), BuildError> {
    let release = version(release).ok_or_else(|| BuildError::Program {
        program: "dnf",
        reason: "/etc/os-release has no VERSION_ID: use --base or --skeleton".to_owned(),
    })?;
    let mut packages = PACKAGES.to_vec();
    if python == Python::IPython {
        packages.push("python3-ipython");
    }
    say(&format!("making a Fedora {release} image with {} (some minutes)", packages.join(", ")));
    let root = config.state.sandbox_files().join(format!("image-root-{}", std::process::id()));
    let mut command = podman.command(None);
    command.args(["unshare", "sh", "-c", SCRIPT, "sh"]).arg(&root).arg(&release).args(&packages);
    pipe::into_image(podman, config, Maker { command, program: "dnf" }, say).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fedora_and_what_is_like_it_are_told_from_debian() {
        let seen = [
            "ID=fedora\nVERSION_ID=42\n",
            "ID=\"rocky\"\nID_LIKE=\"rhel centos fedora\"\nVERSION_ID=\"9.4\"\n",
            "ID=debian\nVERSION_ID=\"12\"\n",
            "ID=fedora\nVERSION_ID=\"$(x)\"\n",
        ]
        .map(|text| (is_fedora(text), version(text)));
        assert_eq!(
            seen,
            [
                (true, Some("42".into())),
                (true, Some("9.4".into())),
                (false, Some("12".into())),
                (true, None)
            ]
        );
    }
}
