//! Certificates for the tests: an authority of our own, and a server's certificate that it signed.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};

/// Files in PEM.
pub(crate) struct Authority {
    /// The authority's own certificate.
    pub root: PathBuf,
    /// One that signed nothing.
    pub stranger: PathBuf,
    /// The server's, for the given names.
    pub certificate: PathBuf,
    /// Its key.
    pub key: PathBuf,
}

fn root(name: &str) -> (CertificateParams, KeyPair) {
    let mut root = CertificateParams::new(Vec::new()).unwrap();
    root.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    root.distinguished_name.push(DnType::CommonName, name);
    (root, KeyPair::generate().unwrap())
}

impl Authority {
    /// Writes everything into a directory; the server's certificate is for these names.
    pub fn write(directory: &Path, names: &[&str]) -> Self {
        let write = |name: &str, text: String, mode: u32| {
            let path = directory.join(name);
            fs::write(&path, text).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            path
        };
        let (params, root_key) = root("wearmark test authority");
        let root_pem = params.self_signed(&root_key).unwrap().pem();
        let issuer = Issuer::new(params, root_key);
        let (params, stranger_key) = root("somebody else");
        let stranger_pem = params.self_signed(&stranger_key).unwrap().pem();
        let key = KeyPair::generate().unwrap();
        let names: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
        let certificate = CertificateParams::new(names).unwrap();
        let certificate = certificate.signed_by(&key, &issuer).unwrap();
        Self {
            root: write("root.pem", root_pem, 0o644),
            stranger: write("stranger.pem", stranger_pem, 0o644),
            certificate: write("server.pem", certificate.pem(), 0o644),
            key: write("server-key.pem", key.serialize_pem(), 0o600),
        }
    }
}
