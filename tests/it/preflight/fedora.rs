//! Fedora, by doubles of its dnf and of Podman: the image, and what the set-up script installs.

use std::process::Command;

use fleet::sandbox::{Python, Recipe, build};

use crate::env::fake_host::FakeHost;
use crate::env::source_root;

/// Writes down what it is asked and puts one file into the root.
const DNF: &str = r#"#!/bin/sh
[ "$1" = --version ] && { echo "dnf5 version 5.2.8"; exit 0; }
echo "$*" >>"$(dirname "$0")/../told"
for argument in "$@"; do
    case $argument in --installroot=*) mkdir -p "${argument#*=}/usr/bin" && echo hello >"${argument#*=}/usr/bin/hello" ;; esac
done
"#;

#[tokio::test]
async fn image_is_made_by_dnf_in_the_user_namespace_and_its_directory_goes() {
    let host = FakeHost::whole();
    host.file("etc/os-release", "ID=fedora\nVERSION_ID=42\n");
    host.program("dnf", DNF);
    let podman = host.connect().expect("connects");
    let recipe = Recipe::Best { python: Python::Plain };
    build(&podman, &host.config, recipe, &|_| ()).await.expect("an image");
    let root = format!("~/state/sandbox/image-root-{}", std::process::id());
    let told = std::fs::read_to_string(host.path("told")).expect("dnf was asked");
    assert_eq!(
        host.plain(told.trim_end()),
        format!(
            "--installroot={root} --releasever=42 --setopt=install_weak_deps=False \
             --setopt=tsflags=nodocs --assumeyes install --use-host-config bash coreutils python3 \
             git-core ca-certificates"
        )
    );
    let tar = host.path("answers/imported.tar");
    let listed = Command::new("tar").arg("-tf").arg(tar).output().expect("tar runs");
    let listed = String::from_utf8_lossy(&listed.stdout).into_owned();
    assert!(listed.lines().any(|line| line == "./usr/bin/hello"), "{listed}");
    assert!(host.calls().iter().any(|call| call.starts_with("import --quiet ")));
    let left = std::fs::read_dir(host.path("state/sandbox"))
        .map(|entries| entries.flatten().count())
        .unwrap_or_default();
    assert_eq!(left, 0);
}

#[tokio::test]
async fn dnf_that_fails_is_told_with_its_words() {
    let host = FakeHost::whole();
    host.file("etc/os-release", "ID=fedora\nVERSION_ID=42\n");
    host.program("dnf", "#!/bin/sh\necho 'Error: no such repository' >&2\nexit 1\n");
    let podman = host.connect().expect("connects");
    let recipe = Recipe::Best { python: Python::Plain };
    let error = build(&podman, &host.config, recipe, &|_| ()).await.expect_err("no image");
    assert_eq!(error.to_string(), "dnf failed (status 1): Error: no such repository");
}

/// What the set-up does on a host that has dnf and no apt.
fn install(host: &FakeHost) -> String {
    for program in ["bash", "env", "cat", "sh"] {
        let found = ["/usr/bin", "/bin"].map(|dir| format!("{dir}/{program}"));
        let found = found.into_iter().find(|path| std::path::Path::new(path).exists());
        let link = host.path("bin").join(program);
        std::os::unix::fs::symlink(found.expect("it is installed"), link).expect("link");
    }
    host.program("id", "#!/bin/sh\necho 0\n");
    host.program("dnf", "#!/bin/sh\necho \"dnf $*\" >>\"${0%/*}/../told\"\n");
    // git is there already.
    host.program("rpm", "#!/bin/sh\n[ \"$3\" = git ]\n");
    let script = format!(
        ". {}/scripts/host.sh; LOG={}; install_packages \"${{SANDBOX_PACKAGES[@]}}\" \"${{BUILD_PACKAGES[@]}}\"",
        source_root().display(),
        host.path("log").display()
    );
    let output = Command::new(host.path("bin/bash"))
        .args(["-euc", &script])
        .env_clear()
        .env("PATH", host.path("bin"))
        .output()
        .expect("bash starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    std::fs::read_to_string(host.path("told")).expect("dnf was asked")
}

#[test]
fn the_set_up_installs_with_dnf_what_is_missing_where_there_is_no_apt() {
    assert_eq!(
        install(&FakeHost::whole()),
        "dnf --assumeyes --setopt=install_weak_deps=False install podman crun runc shadow-utils \
         python3 ca-certificates util-linux tar gcc glibc-devel\n"
    );
}
