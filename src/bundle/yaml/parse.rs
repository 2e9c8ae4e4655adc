//! serde-saphyr in its strict mode.

use serde_json::Value;
use serde_saphyr::{DuplicateKeyPolicy, Error, MergeKeyPolicy, NonFiniteFloatPolicy, Options};

/// Keys and values of one file.
pub(super) const MAX_NODES: usize = 50_000;

/// Of lists and mappings in each other.
pub(super) const MAX_DEPTH: usize = 64;

/// Of one file.
pub(super) const MAX_ALIASES: usize = 100;

/// How much is forgiven: a second reading forgives what the first one has reported, so that the rest
/// of the file is still checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Leniency {
    Strict,
    ReportedAlready,
}

/// Reads one document. Only `true` and `false` are booleans, `017` and `1_000` are text, a key occurs
/// once, there are no merge keys and no tags of one's own; NaN and infinity are text.
pub(super) fn parse(text: &str, leniency: Leniency) -> Result<Value, Error> {
    let strict = leniency == Leniency::Strict;
    let options: Options = serde_saphyr::options! {
        strict_booleans: true,
        leading_zero_numbers_as_strings: true,
        underscored_numbers_as_strings: true,
        duplicate_keys: if strict { DuplicateKeyPolicy::Error } else { DuplicateKeyPolicy::FirstWins },
        merge_keys: if strict { MergeKeyPolicy::Error } else { MergeKeyPolicy::AsOrdinary },
        reject_unsupported_tags: strict,
        non_finite_float_policy: NonFiniteFloatPolicy::AsString,
        with_snippet: false,
        budget: serde_saphyr::budget! {
            max_nodes: MAX_NODES,
            max_events: 200_000,
            max_depth: MAX_DEPTH,
            max_aliases: MAX_ALIASES,
        },
    };
    serde_saphyr::from_str_with_options(text, options)
}
