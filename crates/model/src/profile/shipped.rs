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

static SHIPPED: &[(&str, &str)] = shipped![
    "aws-gp3",
    "fuji-xerox-gigaexpress",
    "generic-slc-8g",
    "generic-tlc-48g",
    "hgst-hds72107",
    "hitachi-15k450",
    "intel-p3700",
    "intel-p4800x",
    "intel-x25-e",
    "intel-x25-e-ftl",
    "kioxia-cm6",
    "mtron-pro-7500",
    "mtron-pro-7500-ftl",
    "ocz-vertex-ex",
    "ocz-vertex-ex-ftl",
    "samsung-860-qvo",
    "samsung-mcaqe32g",
    "samsung-mcaqe32g-ftl",
    "seagate-savvio-15k",
];
