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
        &[$(($name, include_str!(concat!("../../../profiles/", $name, ".toml")))),*]
    };
}

static SHIPPED: &[(&str, &str)] = shipped![
    "aws-gp2",
    "aws-gp3",
    "aws-io1",
    "aws-io2",
    "aws-st1",
    "azure-premium-ssd-p20",
    "azure-premium-ssd-v2",
    "crucial-mx500",
    "crucial-p1",
    "crucial-t500",
    "fuji-xerox-gigaexpress",
    "fusion-io-iodrive-duo",
    "gcp-hyperdisk-balanced",
    "gcp-pd-balanced",
    "gcp-pd-extreme",
    "generic-slc-8g",
    "generic-tlc-48g",
    "hgst-hds72107",
    "hitachi-15k450",
    "intel-320",
    "intel-p3700",
    "intel-p4800x",
    "intel-p5600",
    "intel-s4610",
    "intel-x25-e",
    "intel-x25-e-ftl",
    "intel-x25-m-g2",
    "kioxia-cd6",
    "kioxia-cd7",
    "kioxia-cm6",
    "kioxia-fl6",
    "mangstor-mx6300",
    "micron-7400",
    "micron-7450",
    "micron-7600-max",
    "micron-9100-max",
    "mtron-pro-7500",
    "mtron-pro-7500-ftl",
    "ocz-vertex-ex",
    "ocz-vertex-ex-ftl",
    "sabrent-rocket-4-plus",
    "samsung-860-qvo",
    "samsung-860-qvo-ftl",
    "samsung-970-evo-plus-250g",
    "samsung-970-pro",
    "samsung-980-pro-250g",
    "samsung-mcaqe32g",
    "samsung-mcaqe32g-ftl",
    "samsung-pm883",
    "samsung-pm9a3",
    "samsung-pm9a3-ftl",
    "samsung-pm9d3a",
    "seagate-savvio-15k",
    "solidigm-p5810",
    "solidigm-p5810-ftl",
];
