//! Encryption of a connection, by rustls with ring.
//!
//! The modes are libpq's (PostgreSQL 17 manual, section 32.19.3), for both servers. Two
//! differences, both stricter: a failed handshake is never followed by an attempt without
//! encryption, and a certificate that names its host in the common name alone does not pass
//! `verify-full`.

use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{WebPkiServerVerifier, verify_server_name};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{
    CertificateError, ClientConfig, ClientConnection, DigitallySignedStruct, RootCertStore,
    SignatureScheme,
};
use serde::{Deserialize, Serialize};

use crate::{Address, Error};

/// Whether a TCP connection is encrypted, and how much the server has to prove. A unix socket never
/// is, and needs not be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TlsMode {
    /// Never.
    Disable,
    /// Where the server offers it; it need not prove anything.
    #[default]
    Prefer,
    /// Always; the certificate is checked only where a root certificate is given.
    Require,
    /// Always, with a certificate that a trusted root has signed.
    VerifyCa,
    /// As [`Self::VerifyCa`], and the certificate names the host.
    VerifyFull,
}

impl FromStr for TlsMode {
    type Err = ();

    /// libpq's names, and those of MySQL's clients.
    fn from_str(text: &str) -> Result<Self, ()> {
        Ok(match text.to_ascii_lowercase().replace('_', "-").as_str() {
            "disable" | "disabled" => Self::Disable,
            "prefer" | "preferred" => Self::Prefer,
            "require" | "required" => Self::Require,
            "verify-ca" => Self::VerifyCa,
            "verify-full" | "verify-identity" => Self::VerifyFull,
            _ => return Err(()),
        })
    }
}

/// How a TCP connection is protected.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Tls {
    /// What is asked of the server.
    pub mode: TlsMode,
    /// PEM file of the trusted roots, or `system`; none is the system's.
    pub root_certificates: Option<PathBuf>,
    /// Send a password as it is, unencrypted, to a server that asks for that.
    pub cleartext_password: bool,
}

impl Tls {
    /// The client side of a handshake with a host.
    pub(super) fn client(&self, host: &str, address: &Address) -> Result<ClientConnection, Error> {
        let refused = |why: String| Error::Tls { address: address.clone(), why };
        let name = ServerName::try_from(host.to_owned())
            .map_err(|_| refused(format!("'{host}' cannot be the name of a host")))?;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let verifier = Arc::new(self.verifier(Arc::clone(&provider)).map_err(refused)?);
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| refused(error.to_string()))?
            .dangerous()
            .with_custom_certificate_verifier(verifier)
            .with_no_client_auth();
        ClientConnection::new(Arc::new(config), name).map_err(|error| refused(error.to_string()))
    }

    fn verifier(&self, provider: Arc<CryptoProvider>) -> Result<Verifier, String> {
        let checks =
            self.mode >= TlsMode::VerifyCa || (self.mode == TlsMode::Require && self.given());
        let mut verifier =
            Verifier { chain: None, trusted: Vec::new(), name: false, provider: provider.clone() };
        if !checks {
            return Ok(verifier);
        }
        verifier.name = self.mode == TlsMode::VerifyFull;
        verifier.trusted = self.roots()?;
        let mut roots = RootCertStore::empty();
        let (taken, _) = roots.add_parsable_certificates(verifier.trusted.iter().cloned());
        if taken == 0 {
            return Err("no usable root certificate".to_owned());
        }
        let chain = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider);
        verifier.chain = Some(chain.build().map_err(|error| error.to_string())?);
        Ok(verifier)
    }

    /// Whether the user named root certificates.
    fn given(&self) -> bool {
        self.root_certificates.is_some()
    }

    fn roots(&self) -> Result<Vec<CertificateDer<'static>>, String> {
        match &self.root_certificates {
            Some(path) if path != Path::new("system") => {
                let failed = |error| format!("root certificates '{}': {error}", path.display());
                let read = CertificateDer::pem_file_iter(path).map_err(failed)?;
                read.collect::<Result<_, _>>().map_err(failed)
            }
            _ => Ok(rustls_native_certs::load_native_certs().certs),
        }
    }
}

/// Checks as much of a server's certificate as the mode asks for.
#[derive(Debug)]
struct Verifier {
    /// Checks the chain up to a root; none takes any certificate.
    chain: Option<Arc<WebPkiServerVerifier>>,
    /// The roots themselves: a server may show one of them, as self-signed certificates are used.
    trusted: Vec<CertificateDer<'static>>,
    /// Whether the certificate must name the host.
    name: bool,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let Some(chain) = &self.chain else { return Ok(ServerCertVerified::assertion()) };
        if self.trusted.iter().any(|root| root == end_entity) {
            if self.name {
                verify_server_name(&ParsedCertificate::try_from(end_entity)?, server_name)?;
            }
            return Ok(ServerCertVerified::assertion());
        }
        // The chain is checked before the name, so an error of the name says that the chain holds.
        match chain.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now) {
            Err(rustls::Error::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            )) if !self.name => Ok(ServerCertVerified::assertion()),
            checked => checked,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls12_signature(message, cert, dss, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, cert, dss, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}
