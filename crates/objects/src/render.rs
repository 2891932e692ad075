//! Values to texts that `kubectl apply` reads. Never changes a value.

use serde_json::Value;

/// Documents of YAML, each behind a line of three dashes.
pub fn yaml(documents: &[Value]) -> Result<String, String> {
    let texts = documents.iter().map(|document| serde_saphyr::to_string(document).map_err(|error| error.to_string()));
    texts.map(|text| text.map(|text| format!("---\n{text}"))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn documents_are_parted_and_texts_that_look_like_other_things_stay_texts() {
        let text = yaml(&[json!({"a": "yes"}), json!({"b": ["1", ""]})]).expect("values can be written");
        assert_eq!(text.matches("---\n").count(), 2);
        let back: Vec<Value> = serde_saphyr::from_multiple(&text).expect("what was written can be read");
        assert_eq!(back, [json!({"a": "yes"}), json!({"b": ["1", ""]})]);
    }
}
