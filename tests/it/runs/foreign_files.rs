//! Files of the host that fleet's user may not touch: the run says which, and nothing else breaks.

use std::os::unix::fs::PermissionsExt;

use crate::env::world::World;

const TASK: &[(&str, &str)] = &[
    ("tasks/t.yaml", "prompt: x\nmax_retries: 0\ncompletion: {shell: test -e note}\n"),
    (
        "scripted/t.yaml",
        "turns:\n  - tool_calls:\n      - name: bash\n        arguments: {command: 'echo x > note'}\n  - text: Done.\n",
    ),
];

fn forbid(path: &std::path::Path, mode: u32) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).expect("own file");
}

/// As after a `sudo git pull`: what root wrote cannot be read.
#[test]
fn a_repository_of_which_a_part_cannot_be_read_is_named_and_works_again_when_it_can() {
    let world = World::new(TASK);
    assert_eq!(world.run_task("t")["state"], "success");
    let objects = world.state().join("repos/t/.git/objects");
    forbid(&objects, 0o000);
    let run = world.run_task("t");
    forbid(&objects, 0o755);
    let reason = run["reason"].as_str().unwrap_or_default();
    let named = reason.contains(objects.to_str().expect("text"));
    assert!(named && reason.contains("PermissionDenied"), "{run}");
    assert_eq!(world.run_task("t")["state"], "success");
}
