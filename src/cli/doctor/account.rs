//! What the account that runs fleet needs from root: subordinate ids and linger.

use std::path::Path;

use super::check::Check;

/// Ids that an image's users need.
const WANTED: u64 = 65_536;
/// Where the first range goes on an empty host.
const FIRST: u64 = 100_000;

/// An account of this host.
#[derive(Clone, Debug)]
pub(super) struct Account {
    pub name: String,
    pub uid: u32,
}

impl Account {
    /// By name, as `/etc/passwd` has it.
    pub fn named(name: &str) -> Option<Self> {
        Self::find(|fields| fields.first() == Some(&name))
    }

    /// This process's.
    pub fn own() -> Self {
        let uid = rustix::process::geteuid().as_raw();
        let number = uid.to_string();
        Self::find(|fields| fields.get(2) == Some(&number.as_str()))
            .unwrap_or(Account { name: number, uid })
    }

    fn find(is: impl Fn(&[&str]) -> bool) -> Option<Self> {
        let passwd = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
        passwd.lines().find_map(|line| {
            let fields: Vec<&str> = line.split(':').collect();
            let uid = fields.get(2)?.parse().ok()?;
            is(&fields).then(|| Account { name: fields[0].to_owned(), uid })
        })
    }
}

/// Subordinate ids, with root's command for those that are missing.
pub(super) fn subordinate_ids(account: &Account) -> Check {
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    judge(account, &read("/etc/subuid"), &read("/etc/subgid"))
}

fn judge(account: &Account, subuid: &str, subgid: &str) -> Check {
    let name = "subordinate ids";
    let mut flags = Vec::new();
    for (text, flag) in [(subuid, "--add-subuids"), (subgid, "--add-subgids")] {
        if granted(text, account) < WANTED {
            let first = first_free(text);
            flags.push(format!("{flag} {first}-{}", first + WANTED - 1));
        }
    }
    if flags.is_empty() {
        return Check::ok(name, format!("{} has {WANTED} or more", account.name));
    }
    let message = format!(
        "{} has fewer than {WANTED} in /etc/subuid or /etc/subgid, which containers need",
        account.name
    );
    let command = format!("usermod {} {}", flags.join(" "), account.name);
    Check::wrong(name, message).by_root(command)
}

/// How many ids a subuid(5) text grants.
fn granted(text: &str, account: &Account) -> u64 {
    let uid = account.uid.to_string();
    ranges(text)
        .filter(|(owner, ..)| *owner == account.name || *owner == uid)
        .map(|row| row.2)
        .sum()
}

/// Behind everybody's ranges.
fn first_free(text: &str) -> u64 {
    ranges(text).map(|(_, first, count)| first.saturating_add(count)).max().unwrap_or(0).max(FIRST)
}

fn ranges(text: &str) -> impl Iterator<Item = (&str, u64, u64)> {
    text.lines().filter_map(|line| {
        let mut fields = line.split(':');
        let owner = fields.next()?;
        Some((owner, fields.next()?.trim().parse().ok()?, fields.next()?.trim().parse().ok()?))
    })
}

/// Whether the account's systemd runs when nobody is logged in.
pub(super) fn linger(account: &Account) -> Check {
    let name = "linger";
    if !Path::new("/run/systemd/system").is_dir() {
        let message = "no systemd here: whatever starts fleet must make its runtime directory";
        return Check::ok(name, message);
    }
    if Path::new("/var/lib/systemd/linger").join(&account.name).exists() {
        return Check::ok(name, format!("enabled for {}", account.name));
    }
    let message = format!(
        "not enabled for {}: its runtime directory and its limits end with its last log-in",
        account.name
    );
    Check::wrong(name, message).by_root(format!("loginctl enable-linger {}", account.name))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(subuid: &str, subgid: &str) -> (bool, Option<String>) {
        let account = Account { name: "fleet".into(), uid: 1001 };
        let check = judge(&account, subuid, subgid);
        (check.ok, check.root)
    }

    #[test]
    fn ranges_count_by_name_and_by_number_and_new_ones_go_behind_everybodys() {
        let whole = "other:100000:65536\nfleet:165536:65536\n";
        assert_eq!(judged(whole, whole), (true, None));
        assert_eq!(judged("1001:100000:70000\n", whole), (true, None));
        assert_eq!(
            judged("other:100000:65536\n", ""),
            (
                false,
                Some(
                    "usermod --add-subuids 165536-231071 --add-subgids 100000-165535 fleet".into()
                )
            )
        );
        assert_eq!(
            judged("fleet:100000:1000\n", whole),
            (false, Some("usermod --add-subuids 101000-166535 fleet".into()))
        );
    }
}
