//! JSON Schemas of the bundle's files, made from the types that read them.

use schemars::generate::SchemaSettings;
use serde_json::Value;

use super::raw::{RawManifest, RawPersona, RawScript, RawTask};

/// A kind of file that has a schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SchemaKind {
    Manifest,
    Persona,
    Task,
    Script,
}

impl SchemaKind {
    /// Every kind.
    pub const ALL: [SchemaKind; 4] =
        [SchemaKind::Manifest, SchemaKind::Persona, SchemaKind::Task, SchemaKind::Script];

    /// The kind's name on the command line.
    pub fn as_str(self) -> &'static str {
        match self {
            SchemaKind::Manifest => "manifest",
            SchemaKind::Persona => "persona",
            SchemaKind::Task => "task",
            SchemaKind::Script => "script",
        }
    }

    /// The kind of that name.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == text)
    }

    /// The file in `bundle-schema/`.
    pub fn file_name(self) -> String {
        format!("{}.schema.json", self.as_str())
    }

    /// The schema as JSON text that ends in a new line.
    pub fn text(self) -> String {
        let generator = SchemaSettings::draft2020_12().into_generator();
        let schema = match self {
            SchemaKind::Manifest => generator.into_root_schema_for::<RawManifest>(),
            SchemaKind::Persona => generator.into_root_schema_for::<RawPersona>(),
            SchemaKind::Task => generator.into_root_schema_for::<RawTask>(),
            SchemaKind::Script => generator.into_root_schema_for::<RawScript>(),
        };
        let mut schema = Value::from(schema);
        without_null(&mut schema);
        format!("{schema:#}\n")
    }
}

/// A key that may be absent may not be null: takes the null out that `Option` puts in.
fn without_null(schema: &mut Value) {
    match schema {
        Value::Object(map) => {
            if let Some(Value::Array(types)) = map.get_mut("type") {
                types.retain(|name| name != "null");
                if let [only] = types.as_slice() {
                    let only = only.clone();
                    map.insert("type".to_owned(), only);
                }
            }
            if let Some(Value::Array(choices)) = map.get_mut("anyOf") {
                choices.retain(|choice| choice.get("type").is_none_or(|name| name != "null"));
                if let [Value::Object(only)] = choices.as_slice() {
                    let only = only.clone();
                    map.shift_remove("anyOf");
                    map.extend(only);
                }
            }
            map.values_mut().for_each(without_null);
        }
        Value::Array(items) => items.iter_mut().for_each(without_null),
        _ => {}
    }
}
