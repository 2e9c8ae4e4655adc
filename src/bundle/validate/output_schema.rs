//! `output_schema`: a schema that can be asked.

use serde_json::{Map, Value};

use crate::bundle::yaml::{Document, Finding, Path};
use crate::run::OutputSchema;

/// The schema; a mistake is reported where it stands.
pub(super) fn check_output_schema(
    raw: Option<Map<String, Value>>,
    document: &Document<'_>,
) -> Option<OutputSchema> {
    let schema = Value::Object(raw?);
    match OutputSchema::new(&schema) {
        Ok(schema) => Some(schema),
        Err(error) => {
            let mut at = Path::root().key("output_schema");
            for step in &error.path {
                at = match step.parse() {
                    Ok(index) => at.index(index),
                    Err(_) => at.key(step),
                };
            }
            let finding =
                Finding::error("invalid-schema", format!("this is no JSON Schema: {error}")).hint(
                    "write a JSON Schema of draft 2020-12; references lead into the schema itself",
                );
            document.report(&at, finding);
            None
        }
    }
}
