//! The profiles that the binary carries.

/// Name and TOML text of every shipped profile, in alphabetical order.
pub fn shipped() -> &'static [(&'static str, &'static str)] {
    SHIPPED
}

/// The TOML text of the shipped profile `name`.
pub fn find_shipped(name: &str) -> Option<&'static str> {
    SHIPPED.iter().find(|(own, _)| *own == name).map(|(_, text)| *text)
}

macro_rules! shipped {
    ($($name:literal),* $(,)?) => {
        &[$(($name, include_str!(concat!("../../../../profiles/", $name, ".toml")))),*]
    };
}

static SHIPPED: &[(&str, &str)] = shipped!["mtron-pro-7500"];
