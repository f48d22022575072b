#include "runtime/identity/authority.h"

#include <algorithm>

#include "absl/strings/str_join.h"
#include "algorithms/base/status_macros.h"
#include "runtime/identity/certificate.h"
#include "runtime/identity/openssl.h"

namespace gossamer {
namespace {

constexpr int kSerialBits = 127;  // positive, and of 16 bytes
constexpr long kVersion3 = 2;     // as X.509 counts
constexpr char kConnections[] = "serverAuth,clientAuth";
constexpr char kSignatures[] = "codeSigning";
constexpr size_t kMaxRequestBytes = 4096;  // a request of P-256 has 200

openssl::TimePtr ToAsn1(absl::Time time) {
  return openssl::TimePtr(ASN1_TIME_set(nullptr, absl::ToTimeT(time)));
}

bool AddExtension(X509* x509, X509* issuer, int nid, const std::string& value) {
  X509V3_CTX context;
  X509V3_set_ctx(&context, issuer, x509, nullptr, nullptr, 0);
  X509_EXTENSION* extension =
      X509V3_EXT_conf_nid(nullptr, &context, nid, value.c_str());
  const bool added =
      extension != nullptr && X509_add_ext(x509, extension, -1) == 1;
  X509_EXTENSION_free(extension);
  return added;
}

// Version, serial number, names, days and key; `issuer` may be `x509` itself.
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

std::string ToPem(EVP_PKEY* key) {
  return openssl::ToPem([&](BIO* out) {
    return PEM_write_bio_PKCS8PrivateKey(out, key, nullptr, nullptr, 0, nullptr,
                                         nullptr);
  });
}

absl::StatusOr<KeyPair> ToKeyPair(X509* x509, EVP_PKEY* key) {
  KeyPair pair{.certificate = ToPem(x509), .key = ToPem(key)};
  if (pair.certificate.empty() || pair.key.empty()) {
    return openssl::Error("cannot write a certificate");
  }
  return pair;
}

// As OpenSSL's extensions are written; kInvalidArgument where a name would be
// read as something else.
absl::StatusOr<std::string> AlternativeNames(
    const Identity& identity, const std::vector<std::string>& names) {
  std::string text = absl::StrCat("critical,URI:", ToUri(identity));
  for (const std::string& name : names) {
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
                                      absl::Duration life) {
  const openssl::KeyPtr key(EVP_EC_gen("P-256"));
  const openssl::CertificatePtr x509(X509_new());
  if (!key || !x509 ||
      !Fill(x509.get(), x509.get(), key.get(),
            absl::StrCat("gossamer run ", run).substr(0, 64), now - kClockSkew,
            now + life) ||
      !AddExtension(x509.get(), x509.get(), NID_basic_constraints,
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

// A certificate for the public half of `key`.  `use`: an extended key usage.
absl::StatusOr<openssl::CertificatePtr> Certify(
    const KeyPair& authority, EVP_PKEY* key, const std::string& use,
    const Identity& identity, const std::vector<std::string>& names,
    absl::Time now, absl::Duration life) {
  GOSSAMER_ASSIGN_OR_RETURN(const std::string alternatives,
                            AlternativeNames(identity, names));
  const openssl::CertificatePtr issuer =
      openssl::ReadCertificatePem(authority.certificate);
  const openssl::KeyPtr issuer_key = openssl::ReadKeyPem(authority.key);
  if (!issuer || !issuer_key) {
    return absl::InvalidArgumentError("the authority cannot be read");
  }
  const absl::Time until =
      std::min(now + life, openssl::ToTime(X509_get0_notAfter(issuer.get())));
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
      !AddExtension(x509.get(), issuer.get(), NID_ext_key_usage, use) ||
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

// Only keys of the kind that is made here: others may take long to check.
absl::StatusOr<openssl::KeyPtr> KeyOf(absl::string_view der) {
  const absl::Status refused = absl::InvalidArgumentError(
      "that is no request for a certificate, or not by the holder of its key");
  if (der.size() > kMaxRequestBytes) return refused;
  const auto* bytes = reinterpret_cast<const unsigned char*>(der.data());
  const openssl::RequestPtr request(
      d2i_X509_REQ(nullptr, &bytes, static_cast<long>(der.size())));
  openssl::KeyPtr key(request ? X509_REQ_get_pubkey(request.get()) : nullptr);
  char group[32] = "";
  const bool fits =
      key &&
      EVP_PKEY_get_group_name(key.get(), group, sizeof(group), nullptr) == 1 &&
      absl::string_view(group) == SN_X9_62_prime256v1 &&
      X509_REQ_verify(request.get(), key.get()) == 1;
  ERR_clear_error();
  if (!fits) return refused;
  return key;
}

}  // namespace

absl::Status CheckNames(const std::vector<std::string>& names) {
  return AlternativeNames({}, names).status();
}

absl::StatusOr<KeyPair> Issue(const KeyPair& authority,
                              const Identity& identity,
                              const std::vector<std::string>& names,
                              absl::Time now, absl::Duration life) {
  const openssl::KeyPtr key(EVP_EC_gen("P-256"));
  if (!key) return openssl::Error("cannot make a key");
  GOSSAMER_ASSIGN_OR_RETURN(
      const openssl::CertificatePtr x509,
      Certify(authority, key.get(), kConnections, identity, names, now, life));
  return ToKeyPair(x509.get(), key.get());
}

absl::StatusOr<KeyPair> IssueSigner(const KeyPair& authority,
                                    const Identity& identity, absl::Time now,
                                    absl::Duration life) {
  const openssl::KeyPtr key(EVP_PKEY_Q_keygen(nullptr, nullptr, "ED25519"));
  if (!key) return openssl::Error("cannot make a key");
  GOSSAMER_ASSIGN_OR_RETURN(
      const openssl::CertificatePtr x509,
      Certify(authority, key.get(), kSignatures, identity, {}, now, life));
  return ToKeyPair(x509.get(), key.get());
}

absl::StatusOr<SigningRequest> MakeSigningRequest(const std::string& key) {
  const openssl::KeyPtr own = key.empty() ? openssl::KeyPtr(EVP_EC_gen("P-256"))
                                          : openssl::ReadKeyPem(key);
  const openssl::RequestPtr request(X509_REQ_new());
  unsigned char* der = nullptr;
  int size = 0;
  if (!own || !request || X509_REQ_set_pubkey(request.get(), own.get()) != 1 ||
      X509_REQ_sign(request.get(), own.get(), EVP_sha256()) == 0 ||
      (size = i2d_X509_REQ(request.get(), &der)) <= 0) {
    return openssl::Error("cannot ask for a certificate");
  }
  SigningRequest made{
      .der = {reinterpret_cast<const char*>(der), static_cast<size_t>(size)},
      .key = ToPem(own.get())};
  OPENSSL_free(der);
  return made;
}

absl::StatusOr<std::string> CheckSigningRequest(absl::string_view der) {
  GOSSAMER_ASSIGN_OR_RETURN(const openssl::KeyPtr key, KeyOf(der));
  unsigned char* bytes = nullptr;
  const int size = i2d_PUBKEY(key.get(), &bytes);
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned int length = 0;
  const bool hashed =
      size > 0 && EVP_Digest(bytes, static_cast<size_t>(size), digest, &length,
                             EVP_sha256(), nullptr) == 1;
  OPENSSL_free(bytes);
  if (!hashed) return openssl::Error("cannot hash a key");
  return std::string(reinterpret_cast<const char*>(digest), length);
}

absl::StatusOr<std::string> IssueFor(const KeyPair& authority,
                                     absl::string_view request,
                                     const Identity& identity,
                                     const std::vector<std::string>& names,
                                     absl::Time now, absl::Duration life) {
  GOSSAMER_ASSIGN_OR_RETURN(const openssl::KeyPtr key, KeyOf(request));
  GOSSAMER_ASSIGN_OR_RETURN(
      const openssl::CertificatePtr x509,
      Certify(authority, key.get(), kConnections, identity, names, now, life));
  return ToPem(x509.get());
}

absl::StatusOr<std::string> Revoke(const KeyPair& authority,
                                   absl::string_view crl,
                                   const std::vector<std::string>& serials,
                                   absl::Time now) {
  const openssl::CertificatePtr issuer =
      openssl::ReadCertificatePem(authority.certificate);
  const openssl::KeyPtr key = openssl::ReadKeyPem(authority.key);
  if (!issuer || !key) {
    return absl::InvalidArgumentError("the authority cannot be read");
  }
  std::vector<std::string> all = serials;
  if (!crl.empty()) {
    GOSSAMER_ASSIGN_OR_RETURN(const Trust trust,
                              Trust::Create(authority.certificate, crl));
    for (std::string& serial : trust.Revoked()) all.push_back(serial);
  }
  std::sort(all.begin(), all.end());
  all.erase(std::unique(all.begin(), all.end()), all.end());
  const openssl::CrlPtr list(X509_CRL_new());
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
  for (const std::string& serial : all) {
    BIGNUM* number = nullptr;
    const int digits = BN_hex2bn(&number, serial.c_str());
    const openssl::BignumPtr owned(number);
    const openssl::IntegerPtr integer(
        digits == 0 ? nullptr : BN_to_ASN1_INTEGER(number, nullptr));
    X509_REVOKED* revoked = X509_REVOKED_new();
    if (!integer || static_cast<size_t>(digits) != serial.size() ||
        X509_REVOKED_set_serialNumber(revoked, integer.get()) != 1 ||
        X509_REVOKED_set_revocationDate(revoked, today.get()) != 1 ||
        X509_CRL_add0_revoked(list.get(), revoked) != 1) {
      X509_REVOKED_free(revoked);
      return absl::InvalidArgumentError(
          absl::StrCat("\"", serial, "\" is no serial number"));
    }
  }
  X509_CRL_sort(list.get());
  if (X509_CRL_sign(list.get(), key.get(), EVP_sha256()) == 0) {
    return openssl::Error("cannot sign a list of revoked certificates");
  }
  return openssl::ToPem(
      [&](BIO* out) { return PEM_write_bio_X509_CRL(out, list.get()); });
}

}  // namespace gossamer
