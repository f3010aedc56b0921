//! What requests of the synthetic server do, as text.

use synthetic::recipe::{Recipe, parse_bytes};

/// A text is refused in words, or is a recipe that reads back as it is shown.
pub fn run(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    if let Some(bytes) = parse_bytes(text) {
        assert!(text.starts_with(|first: char| first.is_ascii_digit()));
        assert!(bytes == 0 || text.contains(|digit| ('1'..='9').contains(&digit)));
    }
    match text.parse::<Recipe>() {
        Ok(recipe) => assert_eq!(recipe.to_string().parse(), Ok(recipe)),
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}
