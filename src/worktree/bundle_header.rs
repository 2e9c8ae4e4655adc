//! Reads the head of a git bundle before git does: which tip it claims and how many objects follow.
//! Pure. Everything in it is hostile.

use super::BundleError;

/// A bundle of `base..HEAD` has a handful of lines; a merge-heavy one some hundreds.
const MAX_LINES: usize = 10_000;
const MAX_LINE: usize = 4096;

/// The part of a bundle that decides whether git may read it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct BundleHeader {
    /// The object id that the bundle ends in, in hexadecimal.
    pub tip: String,
    /// The ref under which it carries the tip.
    pub tip_ref: String,
    /// Objects in the pack.
    pub objects: u64,
}

/// Reads the header; the only refs allowed are `HEAD` and the run's own branch, both at one tip.
pub(super) fn parse(bytes: &[u8], branch_ref: &str) -> Result<BundleHeader, BundleError> {
    let mut rest = bytes;
    match next_line(&mut rest)? {
        b"# v2 git bundle" | b"# v3 git bundle" => {}
        _ => return Err(BundleError::Malformed("it does not start like a git bundle")),
    }
    let mut tip: Option<(String, String)> = None;
    for _ in 0..MAX_LINES {
        let line = next_line(&mut rest)?;
        match line.first() {
            None => {
                let (tip, tip_ref) = tip.ok_or(BundleError::Malformed("it carries no ref"))?;
                return Ok(BundleHeader { tip, tip_ref, objects: pack_objects(rest)? });
            }
            Some(b'@') if line.starts_with(b"@object-format=") => {}
            Some(b'@') => return Err(BundleError::Malformed("it asks for an unknown capability")),
            Some(b'-') => {}
            Some(_) => {
                let found = parse_ref(line, branch_ref)?;
                if tip.as_ref().is_some_and(|known| known.0 != found.0) {
                    return Err(BundleError::Malformed("its refs disagree about the tip"));
                }
                tip.get_or_insert(found);
            }
        }
    }
    Err(BundleError::Malformed("its header does not end"))
}

fn parse_ref(line: &[u8], branch_ref: &str) -> Result<(String, String), BundleError> {
    let text =
        str::from_utf8(line).map_err(|_| BundleError::Malformed("a ref is not UTF-8 text"))?;
    let (id, name) =
        text.split_once(' ').ok_or(BundleError::Malformed("a ref line has no name"))?;
    if !matches!(id.len(), 40 | 64) || !id.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Err(BundleError::Malformed("a ref has no object id"));
    }
    if name != "HEAD" && name != branch_ref {
        return Err(BundleError::UnexpectedRef(name.to_owned()));
    }
    Ok((id.to_ascii_lowercase(), name.to_owned()))
}

/// The count in a pack's first twelve bytes.
fn pack_objects(pack: &[u8]) -> Result<u64, BundleError> {
    let malformed = BundleError::Malformed("no pack follows its header");
    match pack {
        [b'P', b'A', b'C', b'K', 0, 0, 0, 2 | 3, a, b, c, d, ..] => {
            Ok(u64::from(u32::from_be_bytes([*a, *b, *c, *d])))
        }
        _ => Err(malformed),
    }
}

fn next_line<'a>(rest: &mut &'a [u8]) -> Result<&'a [u8], BundleError> {
    let window = &rest[..rest.len().min(MAX_LINE)];
    let end = window
        .iter()
        .position(|byte| *byte == b'\n')
        .ok_or(BundleError::Malformed("a header line does not end"))?;
    let line = &rest[..end];
    *rest = &rest[end + 1..];
    Ok(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    const BRANCH: &str = "refs/heads/fleet/task-a-1";
    const TIP: &str = "1111111111111111111111111111111111111111";

    fn bundle(lines: &str) -> Vec<u8> {
        let mut bytes = format!("# v2 git bundle\n{lines}\n").into_bytes();
        bytes.extend_from_slice(b"PACK\0\0\0\x02\0\0\x01\x05rest");
        bytes
    }

    #[test]
    fn tip_ref_and_object_count_are_read() {
        let bytes = bundle(&format!("-{} base\n{TIP} HEAD\n{TIP} {BRANCH}\n", "2".repeat(40)));
        let header = parse(&bytes, BRANCH);
        assert_eq!(
            header,
            Ok(BundleHeader { tip: TIP.into(), tip_ref: "HEAD".into(), objects: 0x105 })
        );
    }

    #[test]
    fn a_ref_outside_the_run_is_refused() {
        let bytes = bundle(&format!("{TIP} refs/heads/main\n"));
        let refused = Err(BundleError::UnexpectedRef("refs/heads/main".into()));
        assert_eq!(parse(&bytes, BRANCH), refused);
    }

    #[test]
    fn two_tips_are_refused() {
        let bytes = bundle(&format!("{TIP} HEAD\n{} {BRANCH}\n", "3".repeat(40)));
        let refused = Err(BundleError::Malformed("its refs disagree about the tip"));
        assert_eq!(parse(&bytes, BRANCH), refused);
    }

    #[test]
    fn a_filtered_bundle_is_refused() {
        let bytes = b"# v3 git bundle\n@filter=blob:none\n\n";
        let refused = Err(BundleError::Malformed("it asks for an unknown capability"));
        assert_eq!(parse(bytes, BRANCH), refused);
    }

    #[test]
    fn every_cut_of_a_bundle_is_refused_without_a_panic() {
        let whole = bundle(&format!("{TIP} HEAD\n"));
        let needed = whole.len() - b"rest".len();
        for end in 0..needed {
            assert!(parse(&whole[..end], BRANCH).is_err(), "cut at {end}");
        }
        assert!(parse(&whole[..needed], BRANCH).is_ok());
    }
}
