#include "runtime/identity/certificate.h"

#include <algorithm>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/ascii.h"
#include "algorithms/base/mutex.h"
#include "algorithms/base/status_macros.h"
#include "runtime/base/sha256.h"
#include "runtime/identity/openssl.h"

namespace gossamer {
namespace {

constexpr size_t kSignatureBytes = 64;  // RFC 8032, section 5.1.6

std::string DateOf(absl::Time time) {
  return absl::FormatTime("%Y-%m-%d %H:%M UTC", time, absl::UTCTimeZone());
}

std::string SerialOf(const ASN1_INTEGER* serial) {
  const openssl::BignumPtr number(ASN1_INTEGER_to_BN(serial, nullptr));
  char* hex = number ? BN_bn2hex(number.get()) : nullptr;
  std::string text = hex == nullptr ? "" : hex;
  OPENSSL_free(hex);
  // Serials have one form everywhere: they are compared as text, and name
  // files.
  return absl::AsciiStrToLower(text);
}

std::string AddressText(const ASN1_OCTET_STRING* address) {
  char* text = i2s_ASN1_OCTET_STRING(nullptr, address);
  const int size = ASN1_STRING_length(address);
  const unsigned char* b = ASN1_STRING_get0_data(address);
  std::string result = text == nullptr ? "" : text;
  OPENSSL_free(text);
  // Only IPv4 has a form of its own here; an IPv6 address stays in OpenSSL's,
  // byte by byte in hexadecimal.
  if (size != 4) return result;
  return absl::StrCat(b[0], ".", b[1], ".", b[2], ".", b[3]);
}

absl::StatusOr<Certificate> Read(X509* x509) {
  Certificate read;
  read.serial = SerialOf(X509_get0_serialNumber(x509));
  read.from = openssl::ToTime(X509_get0_notBefore(x509));
  read.until = openssl::ToTime(X509_get0_notAfter(x509));
  read.only_signs = openssl::IsEd25519(X509_get0_pubkey(x509));
  const openssl::NamesPtr names(static_cast<GENERAL_NAMES*>(
      X509_get_ext_d2i(x509, NID_subject_alt_name, nullptr, nullptr)));
  int identities = 0;
  for (int i = 0; names && i < sk_GENERAL_NAME_num(names.get()); ++i) {
    const GENERAL_NAME* name = sk_GENERAL_NAME_value(names.get(), i);
    if (name->type == GEN_URI) {
      GOSSAMER_ASSIGN_OR_RETURN(
          read.identity,
          ParseIdentity(openssl::TextOf(name->d.uniformResourceIdentifier)));
      // A second identity is as bad as none: it would be undecided for whom the
      // certificate speaks.
      ++identities;
    } else if (name->type == GEN_DNS) {
      read.names.emplace_back(openssl::TextOf(name->d.dNSName));
    } else if (name->type == GEN_IPADD) {
      read.names.push_back(AddressText(name->d.iPAddress));
    }
  }
  if (identities != 1) {
    return absl::InvalidArgumentError(absl::StrCat(
        "a certificate with ", identities,
        " identities; one of a run has one, see gossamer certs issue"));
  }
  return read;
}

absl::StatusOr<openssl::CertificatePtr> ReadPem(absl::string_view pem) {
  if (pem.size() > kMaxPemBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("a certificate of ", pem.size(), " bytes"));
  }
  openssl::CertificatePtr x509 = openssl::ReadCertificatePem(pem);
  if (!x509) {
    return absl::InvalidArgumentError("no certificate in PEM");
  }
  return x509;
}

std::string Message(absl::string_view context, absl::string_view bytes) {
  // The zero byte ends the context, so that no other split of the same bytes is
  // a message.
  return absl::StrCat("gossamer ", context, absl::string_view("\0", 1), bytes);
}

std::set<std::string> SerialsIn(X509_CRL* crl) {
  std::set<std::string> serials;
  STACK_OF(X509_REVOKED)* revoked = X509_CRL_get_REVOKED(crl);
  for (int i = 0; i < sk_X509_REVOKED_num(revoked); ++i) {
    serials.insert(SerialOf(
        X509_REVOKED_get0_serialNumber(sk_X509_REVOKED_value(revoked, i))));
  }
  return serials;
}

}  // namespace

absl::StatusOr<Certificate> ReadCertificate(absl::string_view pem) {
  GOSSAMER_ASSIGN_OR_RETURN(const openssl::CertificatePtr x509, ReadPem(pem));
  return Read(x509.get());
}

bool KeyFits(absl::string_view certificate, absl::string_view key) {
  const openssl::CertificatePtr x509 = openssl::ReadCertificatePem(certificate);
  const openssl::KeyPtr private_key = openssl::ReadKeyPem(key);
  const bool fits = x509 && private_key &&
                    X509_check_private_key(x509.get(), private_key.get()) == 1;
  ERR_clear_error();
  return fits;
}

struct Trust::Impl {
  openssl::StorePtr store;
  openssl::CrlPtr crl;
  std::set<std::string> revoked;  // the serial numbers in `crl`
  absl::Time until;               // when the authority's own days are over
  absl::Time list_until = absl::InfiniteFuture();

  // A certificate that has passed, as of that time.  A chain and a list do not
  // change, so only days can end; and a check takes a hundred times as long as
  // a look here.
  struct Passed {
    Certificate certificate;
    absl::Time at;
  };
  // By the digest of the PEM in OpenSSL's own form.  None but those of the
  // authority are in it, each once: anybody can write one in many ways.
  static constexpr size_t kMaxPassed = 1 << 15;
  Mutex mu;
  std::map<std::string, Passed> passed ABSL_GUARDED_BY(mu);

  // Null: not yet, or its days have to be looked at.
  std::optional<Certificate> Find(const std::string& digest, absl::Time now) {
    MutexLock lock(&mu);
    const auto it = passed.find(digest);
    if (it == passed.end()) return std::nullopt;
    const Certificate& found = it->second.certificate;
    const absl::Time end = std::min({found.until, until, list_until});
    if (now < it->second.at || now >= end) return std::nullopt;
    return found;
  }
  void Keep(const std::string& digest, const Certificate& certificate,
            absl::Time now) {
    // OpenSSL had no memory for it.
    if (digest.empty()) return;
    MutexLock lock(&mu);
    if (passed.size() >= kMaxPassed) passed.clear();
    passed[digest] = {certificate, now};
  }
};

Trust::Trust(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Trust::Trust(Trust&&) noexcept = default;
Trust& Trust::operator=(Trust&&) noexcept = default;
Trust::~Trust() = default;

absl::StatusOr<Trust> Trust::Create(absl::string_view authority,
                                    absl::string_view crl) {
  GOSSAMER_ASSIGN_OR_RETURN(const openssl::CertificatePtr root,
                            ReadPem(authority));
  if (X509_check_ca(root.get()) != 1) {
    return absl::InvalidArgumentError(
        "a certificate that may not issue others is no authority");
  }
  auto impl = std::make_unique<Impl>();
  impl->until = openssl::ToTime(X509_get0_notAfter(root.get()));
  impl->store.reset(X509_STORE_new());
  if (!impl->store || X509_STORE_add_cert(impl->store.get(), root.get()) != 1) {
    return openssl::Error("cannot keep the authority");
  }
  if (!crl.empty()) {
    impl->crl = openssl::ReadCrlPem(crl);
    if (!impl->crl) {
      return absl::InvalidArgumentError("no list of revoked certificates");
    }
    // OpenSSL would find out at each check only; here a wrong file is refused
    // as it is read.
    if (X509_CRL_verify(impl->crl.get(), X509_get0_pubkey(root.get())) != 1) {
      ERR_clear_error();
      return absl::InvalidArgumentError(
          "the list of revoked certificates is of another authority, or "
          "damaged");
    }
    if (X509_STORE_add_crl(impl->store.get(), impl->crl.get()) != 1) {
      return openssl::Error("cannot keep the list of revoked certificates");
    }
    // With a list the store refuses revoked certificates, and all once the list
    // has ended.
    if (const ASN1_TIME* end = X509_CRL_get0_nextUpdate(impl->crl.get())) {
      impl->list_until = openssl::ToTime(end);
    }
    impl->revoked = SerialsIn(impl->crl.get());
    X509_STORE_set_flags(impl->store.get(), X509_V_FLAG_CRL_CHECK);
  }
  return Trust(std::move(impl));
}

absl::StatusOr<Certificate> Trust::Check(absl::string_view pem,
                                         absl::Time now) const {
  const auto refuse = [](absl::string_view why) {
    return absl::UnauthenticatedError(why);
  };
  // OpenSSL takes longer to read a certificate than to look at all the rest.
  const std::string digest = Sha256(std::as_bytes(std::span(pem)));
  if (auto passed = impl_->Find(digest, now)) return *std::move(passed);
  const absl::StatusOr<openssl::CertificatePtr> x509 = ReadPem(pem);
  if (!x509.ok()) return refuse(x509.status().message());
  const absl::StatusOr<Certificate> read = Read(x509->get());
  if (!read.ok()) return refuse(read.status().message());
  // The authority is trusted as an issuer, so its own certificate would pass
  // the chain.
  if (read->identity.role == Role::kAuthority) {
    return refuse("an authority's certificate is only to issue others with");
  }
  // The check is of the chain, the days and the list.  That the other end holds
  // the key is TLS's part, or that of CheckSignature().
  const openssl::StoreContextPtr context(X509_STORE_CTX_new());
  if (!context || X509_STORE_CTX_init(context.get(), impl_->store.get(),
                                      x509->get(), nullptr) != 1) {
    return openssl::Error("cannot check a certificate");
  }
  // The time is the caller's: tests and folders have clocks of their own.
  X509_STORE_CTX_set_time(context.get(), 0, absl::ToTimeT(now));
  const bool valid = X509_verify_cert(context.get()) == 1;
  ERR_clear_error();
  // From here on only the reason is looked for, in words that say what to do.
  if (valid) {
    const std::string own_form = openssl::ToPem(
        [&](BIO* out) { return PEM_write_bio_X509(out, x509->get()); });
    if (pem == own_form) impl_->Keep(digest, *read, now);
    return read;
  }
  // All its certificates end with it, and its list of revoked ones.
  if (now > impl_->until) {
    return refuse(absl::StrCat(
        "the authority itself expired at ", DateOf(impl_->until),
        "; make another one with gossamer certs init, and give everybody new "
        "certificates"));
  }
  const std::string whose =
      absl::StrCat("the certificate of ", Describe(read->identity),
                   " of run \"", read->identity.run, "\" ");
  switch (const int error = X509_STORE_CTX_get_error(context.get()); error) {
    case X509_V_ERR_CERT_HAS_EXPIRED:
      return refuse(
          absl::StrCat(whose, "expired at ", DateOf(read->until),
                       "; issue a new one with gossamer certs issue"));
    case X509_V_ERR_CERT_NOT_YET_VALID:
      return refuse(absl::StrCat(whose, "is not valid before ",
                                 DateOf(read->from),
                                 "; is the clock of this machine right?"));
    case X509_V_ERR_CERT_REVOKED:
      return refuse(
          absl::StrCat(whose, "has been revoked (serial ", read->serial, ")"));
    case X509_V_ERR_CRL_HAS_EXPIRED:
      // A list of another tool: those of gossamer certs end with their
      // authority.  Later revocations are unknown, so nobody is believed.
      return refuse(absl::StrCat(
          "the list of revoked certificates expired at ",
          DateOf(openssl::ToTime(X509_CRL_get0_nextUpdate(impl_->crl.get()))),
          "; copy crl.pem from the authority's folder again"));
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
    case X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
    case X509_V_ERR_CERT_SIGNATURE_FAILURE:
    case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
      return refuse(absl::StrCat(whose,
                                 "was issued by another authority than the "
                                 "ca.pem of this end"));
    default:
      return refuse(absl::StrCat(
          whose, "is not valid: ", X509_verify_cert_error_string(error)));
  }
}

const std::set<std::string>& Trust::Revoked() const { return impl_->revoked; }

absl::StatusOr<std::string> SignBytes(absl::string_view key,
                                      absl::string_view context,
                                      absl::string_view bytes) {
  const openssl::KeyPtr private_key = openssl::ReadKeyPem(key);
  const openssl::DigestPtr digest(EVP_MD_CTX_new());
  const std::string message = Message(context, bytes);
  std::string signature(kSignatureBytes, '\0');
  size_t size = signature.size();
  if (!openssl::IsEd25519(private_key.get()) || !digest ||
      EVP_DigestSignInit(digest.get(), nullptr, nullptr, nullptr,
                         private_key.get()) != 1 ||
      EVP_DigestSign(digest.get(),
                     reinterpret_cast<unsigned char*>(signature.data()), &size,
                     reinterpret_cast<const unsigned char*>(message.data()),
                     message.size()) != 1) {
    return openssl::Error("cannot sign: no Ed25519 key");
  }
  return signature;
}

absl::Status CheckSignature(absl::string_view certificate,
                            absl::string_view context, absl::string_view bytes,
                            absl::string_view signature) {
  const openssl::CertificatePtr x509 = openssl::ReadCertificatePem(certificate);
  const openssl::DigestPtr digest(EVP_MD_CTX_new());
  const std::string message = Message(context, bytes);
  // EVP_DigestVerify() checks the length of the signature, too.
  const bool signed_by_it =
      x509 && openssl::IsEd25519(X509_get0_pubkey(x509.get())) && digest &&
      EVP_DigestVerifyInit(digest.get(), nullptr, nullptr, nullptr,
                           X509_get0_pubkey(x509.get())) == 1 &&
      EVP_DigestVerify(digest.get(),
                       reinterpret_cast<const unsigned char*>(signature.data()),
                       signature.size(),
                       reinterpret_cast<const unsigned char*>(message.data()),
                       message.size()) == 1;
  ERR_clear_error();
  return signed_by_it ? absl::OkStatus()
                      : absl::UnauthenticatedError("the signature is wrong");
}

}  // namespace gossamer
