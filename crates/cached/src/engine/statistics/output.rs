use std::fmt::Display;

/// Takes names and values.
pub(crate) struct Output<'t>(pub(super) &'t mut dyn FnMut(&str, &dyn Display));

impl Output<'_> {
    pub fn write(&mut self, name: &str, value: impl Display) {
        (self.0)(name, &value);
    }
}
