//! Whether a container that ended by itself ran out of memory, as the kernel counted it on the host's
//! side. The helper tells of what it outlived; this is for when it did not.

use std::path::{Path, PathBuf};

const CGROUPS: &str = "/sys/fs/cgroup";
/// What Podman's names of a container's own control groups hold.
const PODMAN: &str = "libpod";

/// The kernel's counts of a container's control group and of those above it, and what they were when
/// it began.
#[derive(Debug)]
pub(super) struct Kills {
    /// The inmost first.
    counts: Vec<Count>,
    limit_mb: u64,
}

#[derive(Debug)]
struct Count {
    file: PathBuf,
    /// Of this container alone: those above it count their other children too.
    own: bool,
    before: u64,
}

impl Kills {
    /// Of the container whose first process has this number on the host.
    pub fn of(pid: Option<i32>, limit_mb: u64) -> Self {
        let cgroup =
            pid.and_then(|pid| std::fs::read_to_string(format!("/proc/{pid}/cgroup")).ok());
        Kills::under(Path::new(CGROUPS), &cgroup.unwrap_or_default(), limit_mb)
    }

    /// `cgroup` is what `/proc/PID/cgroup` says.
    fn under(root: &Path, cgroup: &str, limit_mb: u64) -> Self {
        let path = cgroup.lines().find_map(|line| line.strip_prefix("0::/")).unwrap_or_default();
        // A path that leads out of this process's own view of the tree tells nothing.
        let path = if path.split('/').any(|part| part == "..") { "" } else { path };
        let groups = Path::new(path).ancestors().filter(|path| !path.as_os_str().is_empty());
        let counts = groups.filter_map(|group| {
            let file = root.join(group).join("memory.events");
            let own = group.iter().any(|part| part.to_string_lossy().contains(PODMAN));
            killed(&file).map(|before| Count { file, own, before })
        });
        Kills { counts: counts.collect(), limit_mb }
    }

    /// What to say of the container's end, if the kernel killed for want of memory since it began. The
    /// container's own group is gone soon after its last process; then those above it tell.
    pub fn verdict(&self) -> Option<String> {
        let (count, now) =
            self.counts.iter().find_map(|count| Some((count, killed(&count.file)?)))?;
        let surely = if count.own { "" } else { "probably " };
        (now > count.before).then(|| {
            format!(
                "{surely}out of memory: limits.sandbox.memory_mb = {}, and the kernel killed what \
                 needed more; raise the limit, or let the task need less at once",
                self.limit_mb
            )
        })
    }
}

/// How many processes were killed for want of memory; `None` where it is not counted.
fn killed(file: &Path) -> Option<u64> {
    let events = std::fs::read_to_string(file).ok()?;
    events.lines().find_map(|line| line.strip_prefix("oom_kill ")?.trim().parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCOPE: &str = "user.slice/libpod-0123.scope";

    struct Tree(tempfile::TempDir);

    impl Tree {
        fn new() -> Self {
            let tree = Tree(tempfile::tempdir().expect("scratch directory"));
            tree.count(&format!("{SCOPE}/container"), 0);
            tree.count(SCOPE, 0);
            tree.count("user.slice", 3);
            tree
        }

        fn count(&self, group: &str, kills: u64) {
            let dir = self.0.path().join(group);
            std::fs::create_dir_all(&dir).expect("directories");
            let events =
                format!("low 0\nhigh 0\nmax 9\noom 1\noom_kill {kills}\noom_group_kill 0\n");
            std::fs::write(dir.join("memory.events"), events).expect("a file");
        }

        fn kills(&self, cgroup: &str) -> Kills {
            Kills::under(self.0.path(), cgroup, 512)
        }
    }

    fn line(group: &str) -> String {
        format!("1:memory:/else\n0::/{group}\n")
    }

    #[test]
    fn kill_in_the_container_s_own_group_is_told_with_the_limit_and_the_way_out() {
        let tree = Tree::new();
        let kills = tree.kills(&line(&format!("{SCOPE}/container")));
        assert_eq!(kills.verdict(), None);
        tree.count(&format!("{SCOPE}/container"), 1);
        let told = kills.verdict().expect("it was killed");
        assert_eq!(
            told,
            "out of memory: limits.sandbox.memory_mb = 512, and the kernel killed what needed more; \
             raise the limit, or let the task need less at once"
        );
    }

    #[test]
    fn group_that_is_gone_is_told_by_those_above_and_a_neighbour_s_kill_only_as_probable() {
        let tree = Tree::new();
        let kills = tree.kills(&line(&format!("{SCOPE}/container")));
        std::fs::remove_dir_all(tree.0.path().join(SCOPE).join("container")).expect("removed");
        tree.count(SCOPE, 1);
        assert!(kills.verdict().is_some_and(|told| told.starts_with("out of memory: ")));
        std::fs::remove_dir_all(tree.0.path().join(SCOPE)).expect("removed");
        assert_eq!(kills.verdict(), None);
        tree.count("user.slice", 4);
        assert!(kills.verdict().is_some_and(|told| told.starts_with("probably out of memory: ")));
    }

    #[test]
    fn kill_of_a_neighbour_is_not_the_container_s_while_its_own_group_is_there() {
        let tree = Tree::new();
        let kills = tree.kills(&line(&format!("{SCOPE}/container")));
        tree.count("user.slice", 4);
        assert_eq!(kills.verdict(), None);
    }

    #[test]
    fn where_nothing_is_counted_nothing_is_said() {
        let tree = Tree::new();
        for cgroup in ["", "4:memory:/x\n", "0::/\n", "0::/../other\n", "0::/absent\n"] {
            assert_eq!(tree.kills(cgroup).verdict(), None, "{cgroup:?}");
        }
        assert_eq!(Kills::of(None, 1).verdict(), None);
    }
}
