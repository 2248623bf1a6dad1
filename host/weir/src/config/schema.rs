//! Checks a connection's `config` against the JSON Schema that its connector declares.

use std::path::PathBuf;

use jsonschema::error::{ValidationError, ValidationErrorKind};
use serde_json::Value;

use super::error::{ConfigError, suggest};
use super::reader::may_hold_secret;

/// Checks `config` (JSON text) against `schema` (JSON Schema 2020-12 text); all errors are collected, each with its key
/// `connection.NAME.config.path`. [`super::Source::locate`] adds file and line.
///
/// A schema that is itself wrong is an error that blames the connector.
pub fn validate_connector_config(
    schema: &str,
    config: &str,
    connection: &str,
) -> Result<(), Vec<ConfigError>> {
    let root = format!("connection.{connection}.config");
    let blame = |problem: String| {
        vec![ConfigError {
            file: PathBuf::new(),
            line: None,
            key: root.clone(),
            value: None,
            problem,
            help: "this is the connector's mistake: report it to its author".to_owned(),
        }]
    };
    let schema: Value = serde_json::from_str(schema).map_err(|error| {
        blame(format!(
            "the connector's config schema is not JSON: {error}"
        ))
    })?;
    let config: Value = serde_json::from_str(config)
        .map_err(|error| blame(format!("the config cannot be read: {error}")))?;
    let validator = jsonschema::validator_for(&schema)
        .map_err(|error| blame(format!("the connector's config schema is wrong: {error}")))?;
    let errors: Vec<ConfigError> = validator
        .iter_errors(&config)
        .flat_map(|error| explain(&error, &root, &schema))
        .collect();
    if errors.is_empty() {
        Ok(())
    } else {
        Err(errors)
    }
}

fn explain(error: &ValidationError<'_>, root: &str, schema: &Value) -> Vec<ConfigError> {
    let pointer = error.instance_path().as_str();
    let key = format!("{root}{}", pointer.replace('/', "."));
    let one = |key: String, problem: String, help: String| ConfigError {
        file: PathBuf::new(),
        line: None,
        value: None,
        key,
        problem,
        help,
    };
    let example = example(error, schema);
    match error.kind() {
        ValidationErrorKind::AdditionalProperties { unexpected }
        | ValidationErrorKind::UnevaluatedProperties { unexpected } => {
            let known = properties(error, schema);
            let known: Vec<&str> = known.iter().map(String::as_str).collect();
            unexpected
                .iter()
                .map(|name| {
                    one(
                        format!("{key}.{name}"),
                        "is not a key of this connector".to_owned(),
                        suggest(name, &known),
                    )
                })
                .collect()
        }
        ValidationErrorKind::Required { property } => {
            let name = property.as_str().unwrap_or_default();
            let help = described(error, schema, name);
            vec![one(format!("{key}.{name}"), "is missing".to_owned(), help)]
        }
        _ => {
            let hidden = may_hold_secret(&key);
            let shown = match error.instance().as_ref() {
                Value::Object(_) | Value::Array(_) => None,
                _ if hidden => None,
                scalar => Some(short(&scalar.to_string())),
            };
            let problem = match error.kind() {
                // The library's own text leaves out all but a few.
                ValidationErrorKind::Enum { options } => {
                    let options = options.as_array().map(Vec::as_slice).unwrap_or_default();
                    let options: Vec<String> = options.iter().map(Value::to_string).collect();
                    format!("is none of {}", options.join(", "))
                }
                _ => error.masked_with("the value").to_string(),
            };
            let mut found = one(key, problem, example);
            found.value = shown;
            vec![found]
        }
    }
}

fn short(text: &str) -> String {
    let mut short: String = text.chars().take(60).collect();
    if short.len() < text.len() {
        short.push_str("...");
    }
    short
}

/// The part of the schema whose keyword complained.
fn part<'s>(error: &ValidationError<'_>, schema: &'s Value) -> Option<&'s Value> {
    let path = error.schema_path().as_str();
    let (around, _keyword) = path.rsplit_once('/')?;
    schema.pointer(around)
}

/// The keys that the table may have.
fn properties(error: &ValidationError<'_>, schema: &Value) -> Vec<String> {
    part(error, schema)
        .and_then(|part| part.get("properties"))
        .and_then(Value::as_object)
        .map(|properties| properties.keys().cloned().collect())
        .unwrap_or_default()
}

/// The first example or the default that the schema gives for this place.
fn example(error: &ValidationError<'_>, schema: &Value) -> String {
    part(error, schema).map(example_of).unwrap_or_default()
}

fn example_of(part: &Value) -> String {
    let given = part
        .get("examples")
        .and_then(|examples| examples.get(0))
        .or_else(|| part.get("default"));
    match given {
        Some(example) => format!("example: {example}"),
        None => part
            .get("description")
            .and_then(Value::as_str)
            .map(|text| format!("it is: {text}"))
            .unwrap_or_default(),
    }
}

/// What the schema says of a key that is missing.
fn described(error: &ValidationError<'_>, schema: &Value, name: &str) -> String {
    part(error, schema)
        .and_then(|part| part.get("properties"))
        .and_then(|properties| properties.get(name))
        .map(example_of)
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCHEMA: &str = r#"{
        "type": "object",
        "required": ["repos"],
        "additionalProperties": false,
        "properties": {
            "repos": { "type": "array", "items": { "type": "string" }, "minItems": 1,
                       "examples": [["acme/anvil"]] },
            "page_size": { "type": "integer", "minimum": 1, "maximum": 100 },
            "style": { "enum": ["page", "offset", "token", "link", "keyset", "after", "none"] },
            "api_key": { "type": "string", "maxLength": 3 }
        }
    }"#;

    fn errors(config: &str) -> Vec<String> {
        validate_connector_config(SCHEMA, config, "oss")
            .unwrap_err()
            .iter()
            .map(ToString::to_string)
            .collect()
    }

    #[test]
    fn a_right_config_passes() {
        assert_eq!(
            validate_connector_config(SCHEMA, r#"{"repos":["acme/anvil"],"page_size":100}"#, "oss"),
            Ok(())
        );
    }

    #[test]
    fn unknown_missing_and_wrong_are_all_told_at_once() {
        let told = errors(r#"{"repo":["acme/anvil"],"page_size":500}"#);
        assert_eq!(told.len(), 3, "{told:#?}");
        let all = told.join("\n");
        assert!(
            all.contains(
                "connection.oss.config.repo: is not a key of this connector; did you mean repos?"
            ),
            "{all}"
        );
        assert!(
            all.contains("connection.oss.config.repos: is missing; example: [\"acme/anvil\"]"),
            "{all}"
        );
        assert!(
            all.contains("connection.oss.config.page_size = 500: "),
            "{all}"
        );
    }

    #[test]
    fn all_words_that_are_allowed_are_told() {
        let told = errors(r#"{"repos":["a/b"],"style":"pages"}"#);
        assert_eq!(
            told,
            [
                r#"connection.oss.config.style = "pages": is none of "page", "offset", "token", "link", "keyset", "after", "none""#
            ]
        );
    }

    #[test]
    fn a_value_that_may_be_a_secret_is_not_quoted() {
        let all = errors(r#"{"repos":["a/b"],"api_key":"S3CR3T-9f2"}"#).join("\n");
        assert!(all.contains("config.api_key"), "{all}");
        assert!(!all.contains("S3CR3T"), "{all}");
    }

    #[test]
    fn a_broken_schema_is_the_connectors_mistake() {
        for schema in ["{", r#"{"type": 7}"#] {
            let told = validate_connector_config(schema, "{}", "oss").unwrap_err();
            assert!(told[0].help.contains("author"), "{told:?}");
        }
    }
}
