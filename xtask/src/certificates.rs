//! Which certificates cargo finds by itself and names in `SSL_CERT_FILE` and `SSL_CERT_DIR`.

use std::path::{Path, PathBuf};

/// Folders that may hold certificates, in the order in which they are tried.
const FOLDERS: [&str; 14] = [
    "/var/ssl",
    "/usr/share/ssl",
    "/usr/local/ssl",
    "/usr/local/openssl",
    "/usr/local/etc/openssl",
    "/usr/local/share",
    "/usr/lib/ssl",
    "/usr/ssl",
    "/etc/openssl",
    "/etc/pki/ca-trust/extracted/pem",
    "/etc/pki/tls",
    "/etc/ssl",
    "/etc/certs",
    "/opt/etc/ssl",
];

/// Names of a file with all certificates in such a folder, in the order in which they are tried.
const FILES: [&str; 10] = [
    "cert.pem",
    "certs.pem",
    "ca-bundle.pem",
    "cacert.pem",
    "ca-certificates.crt",
    "certs/ca-certificates.crt",
    "certs/ca-root-nss.crt",
    "certs/ca-bundle.crt",
    "CARootCertificates.pem",
    "tls-ca-bundle.pem",
];

/// The variables that would be set on a machine where `exists` tells which files there are.
pub(crate) fn probe(exists: &dyn Fn(&Path) -> bool) -> Vec<(&'static str, PathBuf)> {
    let folders = || FOLDERS.iter().map(Path::new);
    let file = folders()
        .flat_map(|folder| FILES.iter().map(|file| folder.join(file)))
        .find(|file| exists(file));
    let folder = folders()
        .map(|folder| folder.join("certs"))
        .find(|folder| exists(folder));
    file.map(|file| ("SSL_CERT_FILE", file))
        .into_iter()
        .chain(folder.map(|folder| ("SSL_CERT_DIR", folder)))
        .collect()
}
