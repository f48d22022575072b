#include "runtime/identity/authority.h"

#include <algorithm>

#include "algorithms/base/status_macros.h"
#include "runtime/identity/openssl.h"

namespace gossamer {
namespace {

constexpr int kSerialBits = 127;  // positive, and of 16 bytes
constexpr long kVersion3 = 2;     // as X.509 counts
// A peer dials and is dialled, so one certificate has both uses.
constexpr char kConnections[] = "serverAuth,clientAuth";
constexpr char kSignatures[] = "codeSigning";

openssl::TimePtr ToAsn1(absl::Time time) {
  return openssl::TimePtr(ASN1_TIME_set(nullptr, absl::ToTimeT(time)));
}

bool AddExtension(X509* x509, X509* issuer, int nid, const std::string& value) {
  X509V3_CTX context;
  // A subject key identifier is a hash of the key in `x509`, and an authority's
  // repeats that of `issuer`, so both are filled in before.
  X509V3_set_ctx(&context, issuer, x509, nullptr, nullptr, 0);
  X509_EXTENSION* extension =
      X509V3_EXT_conf_nid(nullptr, &context, nid, value.c_str());
  const bool added =
      extension != nullptr && X509_add_ext(x509, extension, -1) == 1;
  // X509_add_ext() has copied it.
  X509_EXTENSION_free(extension);
  return added;
}

// Sets version, serial number, names, days and key.  The serial is random: an
// authority that was copied to two machines still gives no number twice.
// `issuer` may be `x509` itself.
bool Fill(X509* x509, X509* issuer, EVP_PKEY* key, const std::string& subject,
          absl::Time from, absl::Time until) {
  const openssl::BignumPtr serial(BN_new());
  X509_NAME* name = X509_get_subject_name(x509);
  return X509_set_version(x509, kVersion3) == 1 && serial &&
         BN_rand(serial.get(), kSerialBits, BN_RAND_TOP_ONE,
                 BN_RAND_BOTTOM_ANY) == 1 &&
         BN_to_ASN1_INTEGER(serial.get(), X509_get_serialNumber(x509)) !=
             nullptr &&
         X509_NAME_add_entry_by_txt(
             name, "CN", MBSTRING_UTF8,
             reinterpret_cast<const unsigned char*>(subject.c_str()), -1, -1,
             0) == 1 &&
         X509_set_issuer_name(x509, X509_get_subject_name(issuer)) == 1 &&
         X509_set1_notBefore(x509, ToAsn1(from).get()) == 1 &&
         X509_set1_notAfter(x509, ToAsn1(until).get()) == 1 &&
         X509_set_pubkey(x509, key) == 1;
}

std::string ToPem(X509* x509) {
  return openssl::ToPem(
      [&](BIO* out) { return PEM_write_bio_X509(out, x509); });
}

absl::StatusOr<KeyPair> ToKeyPair(X509* x509, EVP_PKEY* key) {
  KeyPair pair{.certificate = ToPem(x509), .key = {}};
  GOSSAMER_ASSIGN_OR_RETURN(pair.key, openssl::PrivateKeyPem(key));
  if (pair.certificate.empty()) {
    return openssl::Error("cannot write a certificate");
  }
  return pair;
}

// Returns the alternative names in the form of OpenSSL's configuration;
// kInvalidArgument for a name that would be read as something else there, such
// as one with a comma.
absl::StatusOr<std::string> AlternativeNames(
    const Identity& identity, const std::vector<std::string>& names) {
  std::string text = absl::StrCat("critical,URI:", ToUri(identity));
  for (const std::string& name : names) {
    // TLS libraries compare addresses as bytes and host names as text, so each
    // has a kind of its own.
    const ASN1_OCTET_STRING* address = a2i_IPADDRESS(name.c_str());
    const bool is_address = address != nullptr;
    ASN1_OCTET_STRING_free(const_cast<ASN1_OCTET_STRING*>(address));
    ERR_clear_error();
    if (!is_address &&
        (name.empty() || name.size() > 253 ||
         name.find_first_not_of("abcdefghijklmnopqrstuvwxyz"
                                "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-") !=
             name.npos)) {
      return absl::InvalidArgumentError(
          absl::StrCat("\"", name, "\" is neither a host name nor an address"));
    }
    absl::StrAppend(&text, is_address ? ",IP:" : ",DNS:", name);
  }
  return text;
}

}  // namespace

absl::StatusOr<KeyPair> MakeAuthority(const std::string& run, absl::Time now,
                                      absl::Duration valid) {
  const openssl::KeyPtr key = openssl::MakeP256();
  const openssl::CertificatePtr x509(X509_new());
  // A common name has at most 64 characters (RFC 5280, ub-common-name); the
  // run's own name is in the URI.
  if (!key || !x509 ||
      !Fill(x509.get(), x509.get(), key.get(),
            absl::StrCat("gossamer run ", run).substr(0, 64), now - kClockSkew,
            now + valid) ||
      !AddExtension(x509.get(), x509.get(), NID_basic_constraints,
                    // There is no intermediate authority below this one: names
                    // cannot be constrained to peers.
                    "critical,CA:TRUE,pathlen:0") ||
      !AddExtension(x509.get(), x509.get(), NID_key_usage,
                    "critical,keyCertSign,cRLSign") ||
      !AddExtension(x509.get(), x509.get(), NID_subject_key_identifier,
                    "hash") ||
      !AddExtension(x509.get(), x509.get(), NID_subject_alt_name,
                    absl::StrCat("URI:", ToUri({.run = run,
                                                .role = Role::kAuthority,
                                                .peer = {}}))) ||
      X509_sign(x509.get(), key.get(), EVP_sha256()) == 0) {
    return openssl::Error("cannot make an authority");
  }
  return ToKeyPair(x509.get(), key.get());
}

namespace {

// Returns a certificate for the public half of `key`.
absl::StatusOr<openssl::CertificatePtr> Certify(
    const KeyPair& authority, EVP_PKEY* key, const Identity& identity,
    const std::vector<std::string>& names, absl::Time now,
    absl::Duration valid) {
  GOSSAMER_ASSIGN_OR_RETURN(const std::string alternatives,
                            AlternativeNames(identity, names));
  const openssl::CertificatePtr issuer =
      openssl::ReadCertificatePem(authority.certificate);
  const openssl::KeyPtr issuer_key = openssl::ReadKeyPem(authority.key);
  if (!issuer || !issuer_key) {
    return absl::InvalidArgumentError("the authority cannot be read");
  }
  // A certificate that outlived its authority would be refused all the same,
  // with a less clear reason.
  const absl::Time until =
      std::min(now + valid, openssl::ToTime(X509_get0_notAfter(issuer.get())));
  if (until <= now) {
    return absl::FailedPreconditionError(
        "the authority has expired; make a new one with gossamer certs init");
  }
  openssl::CertificatePtr x509(X509_new());
  if (!x509 ||
      !Fill(x509.get(), issuer.get(), key,
            absl::StrCat("gossamer ", Describe(identity)), now - kClockSkew,
            until) ||
      !AddExtension(x509.get(), issuer.get(), NID_basic_constraints,
                    "critical,CA:FALSE") ||
      !AddExtension(x509.get(), issuer.get(), NID_key_usage,
                    "critical,digitalSignature") ||
      !AddExtension(x509.get(), issuer.get(), NID_ext_key_usage,
                    // The use follows from the kind of the key: a signer never
                    // passes for an end of a connection.
                    openssl::IsEd25519(key) ? kSignatures : kConnections) ||
      !AddExtension(x509.get(), issuer.get(), NID_subject_key_identifier,
                    "hash") ||
      !AddExtension(x509.get(), issuer.get(), NID_authority_key_identifier,
                    "keyid") ||
      !AddExtension(x509.get(), issuer.get(), NID_subject_alt_name,
                    alternatives) ||
      X509_sign(x509.get(), issuer_key.get(), EVP_sha256()) == 0) {
    return openssl::Error("cannot issue a certificate");
  }
  return x509;
}

}  // namespace

absl::StatusOr<KeyPair> Issue(const KeyPair& authority,
                              const Identity& identity,
                              const std::vector<std::string>& names,
                              absl::Time now, absl::Duration valid) {
  const openssl::KeyPtr key = openssl::MakeP256();
  if (!key) return openssl::Error("cannot make a key");
  GOSSAMER_ASSIGN_OR_RETURN(
      const openssl::CertificatePtr x509,
      Certify(authority, key.get(), identity, names, now, valid));
  return ToKeyPair(x509.get(), key.get());
}

absl::StatusOr<KeyPair> IssueSigner(const KeyPair& authority,
                                    const Identity& identity, absl::Time now,
                                    absl::Duration valid) {
  const openssl::KeyPtr key = openssl::MakeEd25519();
  if (!key) return openssl::Error("cannot make a key");
  GOSSAMER_ASSIGN_OR_RETURN(
      const openssl::CertificatePtr x509,
      Certify(authority, key.get(), identity, {}, now, valid));
  return ToKeyPair(x509.get(), key.get());
}

absl::StatusOr<std::string> IssueFor(const KeyPair& authority,
                                     absl::string_view key,
                                     const Identity& identity,
                                     const std::vector<std::string>& names,
                                     absl::Time now, absl::Duration valid) {
  // The authority never sees the private half, which stays on the machine of
  // the request.
  const openssl::KeyPtr read = openssl::ReadPublicKeyDer(key);
  if (!read) return absl::InvalidArgumentError("that is no public key");
  GOSSAMER_ASSIGN_OR_RETURN(
      const openssl::CertificatePtr x509,
      Certify(authority, read.get(), identity, names, now, valid));
  return ToPem(x509.get());
}

absl::StatusOr<std::string> Revoke(const KeyPair& authority,
                                   absl::string_view crl,
                                   std::set<std::string> revoked,
                                   absl::Time now) {
  const openssl::CertificatePtr issuer =
      openssl::ReadCertificatePem(authority.certificate);
  const openssl::KeyPtr key = openssl::ReadKeyPem(authority.key);
  if (!issuer || !key) {
    return absl::InvalidArgumentError("the authority cannot be read");
  }
  if (!crl.empty()) {
    GOSSAMER_ASSIGN_OR_RETURN(const Trust trust,
                              Trust::Create(authority.certificate, crl));
    // No entry ever leaves: by that a reader knows an older list.
    revoked.insert(trust.Revoked().begin(), trust.Revoked().end());
  }
  const openssl::CrlPtr list(X509_CRL_new());
  // A machine whose clock is a little behind must not take the list for one of
  // the future.
  const openssl::TimePtr today = ToAsn1(now - kClockSkew);
  if (!list || X509_CRL_set_version(list.get(), 1) != 1 ||
      X509_CRL_set_issuer_name(list.get(),
                               X509_get_subject_name(issuer.get())) != 1 ||
      X509_CRL_set1_lastUpdate(list.get(), today.get()) != 1 ||
      // A list stays good until there is a newer one.
      X509_CRL_set1_nextUpdate(list.get(), X509_get0_notAfter(issuer.get())) !=
          1) {
    return openssl::Error("cannot make a list of revoked certificates");
  }
  for (const std::string& serial : revoked) {
    BIGNUM* number = nullptr;
    // OpenSSL reads as many digits as it can; a serial number is all digits or
    // none of one.
    const int digits = BN_hex2bn(&number, serial.c_str());
    const openssl::BignumPtr owned(number);
    const openssl::IntegerPtr integer(
        digits == 0 ? nullptr : BN_to_ASN1_INTEGER(number, nullptr));
    X509_REVOKED* entry = X509_REVOKED_new();
    if (!integer || static_cast<size_t>(digits) != serial.size() ||
        X509_REVOKED_set_serialNumber(entry, integer.get()) != 1 ||
        X509_REVOKED_set_revocationDate(entry, today.get()) != 1 ||
        X509_CRL_add0_revoked(list.get(), entry) != 1) {
      X509_REVOKED_free(entry);
      return absl::InvalidArgumentError(
          absl::StrCat("\"", serial, "\" is no serial number"));
    }
  }
  // OpenSSL looks serial numbers up by binary search.
  X509_CRL_sort(list.get());
  if (X509_CRL_sign(list.get(), key.get(), EVP_sha256()) == 0) {
    return openssl::Error("cannot sign a list of revoked certificates");
  }
  return openssl::ToPem(
      [&](BIO* out) { return PEM_write_bio_X509_CRL(out, list.get()); });
}

}  // namespace gossamer
